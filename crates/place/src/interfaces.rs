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

    /// Whether this interface counts, and why not.
    pub fn counts(&self, name: &str) -> Counted {
        if !self.includes(name) {
            return Counted::NotIncluded;
        }
        match self.excluded_by(name) {
            Some(glob) => Counted::Excluded(glob.as_str().to_owned()),
            None => Counted::Yes,
        }
    }

    /// Only whether it counts: asked for every interface of every node.
    pub fn does_count(&self, name: &str) -> bool {
        self.includes(name) && self.excluded_by(name).is_none()
    }

    fn includes(&self, name: &str) -> bool {
        let included = |globs: &Vec<Glob>| globs.iter().any(|glob| glob.matches(name));
        self.include.as_ref().is_none_or(included)
    }

    fn excluded_by(&self, name: &str) -> Option<&Glob> {
        self.exclude.iter().find(|glob| glob.matches(name))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces(include: Option<&[&str]>, exclude: Option<&[&str]>) -> Interfaces {
        let own = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        let spec = place::Interfaces {
            include: include.map(own),
            exclude: exclude.map(own),
        };
        Interfaces::of(Some(&spec)).unwrap()
    }

    fn excluded(glob: &str) -> Counted {
        Counted::Excluded(glob.to_owned())
    }

    #[test]
    fn by_default_the_hosts_own_count_and_the_pods_do_not() {
        let interfaces = Interfaces::of(None).unwrap();
        for name in ["eth0", "ens5", "bond0", "br0", "ib0"] {
            assert_eq!(interfaces.counts(name), Counted::Yes, "{name}");
            assert!(interfaces.does_count(name), "{name}");
        }
        assert!(!interfaces.does_count("lo"));
        assert_eq!(interfaces.counts("lo"), excluded("lo"));
        assert_eq!(interfaces.counts("veth1a2b"), excluded("veth*"));
    }

    #[test]
    fn include_narrows_and_the_default_exclude_holds_beside_it() {
        let some = interfaces(Some(&["eth?", "veth0"]), None);
        assert_eq!(some.counts("eth0"), Counted::Yes);
        assert_eq!(some.counts("eth10"), Counted::NotIncluded);
        assert_eq!(some.counts("veth0"), excluded("veth*"));
        assert_eq!(
            interfaces(Some(&[]), None).counts("eth0"),
            Counted::Yes,
            "empty is none"
        );
    }

    #[test]
    fn an_exclude_that_is_given_takes_the_place_of_the_default() {
        let all = interfaces(None, Some(&[]));
        assert_eq!(all.counts("lo"), Counted::Yes);
        let some = interfaces(Some(&["*"]), Some(&["eth1"]));
        assert_eq!(some.counts("veth0"), Counted::Yes);
        assert_eq!(some.counts("eth1"), excluded("eth1"));
    }
}
