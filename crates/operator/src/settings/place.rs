//! What can be set about place, and what the help says of it.

use clap::{ArgAction, Args, ValueEnum, builder::BoolishValueParser};
use weir_api::place::defaults::NODE_EXPORTER_PORT;
use weir_place::plan::Options;

use super::SettingsError;

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
    /// The port of the exporters, on each node's InternalIP
    #[arg(long, value_name = "PORT", default_value_t = NODE_EXPORTER_PORT, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Place")]
    pub node_exporter_port: u16,

    /// Exporters that are there already, behind this Service; not supported yet
    #[arg(
        long,
        value_name = "NAMESPACE/NAME[:PORT]",
        hide = true,
        help_heading = "Place"
    )]
    pub node_exporter_service: Option<String>,

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
    /// The port of the exporters.
    pub exporter_port: u16,
    /// How far it may go on nodes.
    pub options: Options,
    /// Which nodes, by a selector of labels; none: all.
    pub nodes: Option<String>,
}

impl Place {
    /// What was typed, as it is meant.
    pub(super) fn new(args: PlaceArgs) -> Result<Self, SettingsError> {
        let PlaceArgs {
            node_exporter_port,
            node_exporter_service,
            allow_taints,
            annotate_nodes,
            node_selector,
        } = args;
        if node_exporter_service.is_some() {
            return Err(SettingsError::NotSupportedYet("--node-exporter-service"));
        }
        Ok(Self {
            exporter_port: node_exporter_port,
            options: Options {
                allow_taints,
                annotate: annotate_nodes,
            },
            nodes: node_selector.filter(|selector| !selector.is_empty()),
        })
    }
}
