//! Which of a node's interfaces count, by name alone: exporters tell neither an interface's kind nor its master. What
//! does not count says why, so that `weir status` and the metrics can show it.

use weir_api::{
    form::glob::Glob,
    place::{self, defaults::EXCLUDED_INTERFACES},
};

use crate::settings::SettingsError;

/// What decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interfaces {
    /// Names that count; none: all.
    include: Option<Vec<Glob>>,
    exclude: Vec<Glob>,
}

/// Whether an interface counts, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It counts.
    Yes,
    /// `include` names others only.
    NotIncluded,
    /// This pattern of `exclude` matches.
    Excluded(String),
}

impl Interfaces {
    /// As the spec has it. The default `exclude` holds beside an `include` too, so that `*` does not count every pod's
    /// interface; an `exclude` that is given takes its place, an empty one included: so a user can count everything.
    /// An empty `include` is the same as none, as it could otherwise only mean "nothing".
    pub fn of(spec: Option<&place::Interfaces>) -> Result<Self, SettingsError> {
        let include = spec.and_then(|spec| spec.include.as_ref());
        let include = include.filter(|globs| !globs.is_empty());
        let include = include
            .map(|globs| parse("interfaces.include", globs.iter().map(String::as_str)))
            .transpose()?;
        let exclude = match spec.and_then(|spec| spec.exclude.as_ref()) {
            Some(globs) => parse("interfaces.exclude", globs.iter().map(String::as_str))?,
            None => parse("interfaces.exclude", EXCLUDED_INTERFACES.into_iter())?,
        };
        Ok(Self { include, exclude })
    }

    /// Whether this interface counts.
    pub fn counts(&self, name: &str) -> Counted {
        let included = |globs: &Vec<Glob>| globs.iter().any(|glob| glob.matches(name));
        if !self.include.as_ref().is_none_or(included) {
            return Counted::NotIncluded;
        }
        match self.exclude.iter().find(|glob| glob.matches(name)) {
            Some(glob) => Counted::Excluded(glob.as_str().to_owned()),
            None => Counted::Yes,
        }
    }
}

fn parse<'a>(
    field: &'static str,
    globs: impl Iterator<Item = &'a str>,
) -> Result<Vec<Glob>, SettingsError> {
    globs
        .map(|glob| Glob::parse(glob).map_err(|source| SettingsError::Glob { field, source }))
        .collect()
}
