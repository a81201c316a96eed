//! What can be set about place, and what the help says of it.

use clap::{ArgAction, Args, ValueEnum, builder::BoolishValueParser};
use weir_place::plan::Options;

use super::{
    SettingsError,
    exporters::{ExporterArgs, ExporterSettings},
};

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Controller {
    /// Scales services to zero and holds their requests
    Hold,
    /// Keeps pods off nodes whose network is full
    Place,
}

/// Flags of place.
#[derive(Args, Clone, Debug)]
pub struct PlaceArgs {
    /// Where the exporters are, and how they are asked.
    #[command(flatten)]
    pub exporters: ExporterArgs,

    /// Let a TrafficWatch taint nodes (PreferNoSchedule) where its action is `taint`
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", help_heading = "Place")]
    pub allow_taints: bool,

    /// Write each node's load to its annotation traffic.example.com/bandwidth-percent, in steps of 5 and at most once a minute
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", help_heading = "Place")]
    pub annotate_nodes: bool,

    /// Measure and label only nodes with these labels; needed with --watch-namespace, so that the labels of other operators' watches are left alone
    #[arg(long, value_name = "SELECTOR", help_heading = "Place")]
    pub node_selector: Option<String>,
}

/// How place behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the exporters are, and how they are asked.
    pub exporters: ExporterSettings,
    /// How far it may go on nodes.
    pub options: Options,
    /// Which nodes, by a selector of labels; none: all.
    pub nodes: Option<String>,
}

impl Place {
    /// What was typed, as it is meant.
    pub(super) fn new(args: PlaceArgs) -> Result<Self, SettingsError> {
        let PlaceArgs {
            exporters,
            allow_taints,
            annotate_nodes,
            node_selector,
        } = args;
        Ok(Self {
            exporters: ExporterSettings::new(exporters)?,
            options: Options {
                allow_taints,
                annotate: annotate_nodes,
            },
            nodes: node_selector.filter(|selector| !selector.is_empty()),
        })
    }
}
