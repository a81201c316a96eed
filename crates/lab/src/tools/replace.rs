//! Which replace directives a wrapper module must take over from the module that it builds.
//!
//! Go heeds replace directives of the main module only, so [`super::build`]'s wrapper has to repeat them.
//! Kubernetes is the special case: it requires its staging modules at v0.0.0 and replaces them by local
//! directories, which a consumer does not have; the published v0.X.Y of the release stands for them.

use serde::Deserialize;

/// The part of `go mod edit -json` that matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoMod {
    go: Option<String>,
    #[serde(default)]
    require: Option<Vec<Module>>,
    #[serde(default)]
    replace: Option<Vec<Replace>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Replace {
    old: Module,
    new: Module,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Module {
    path: String,
    version: Option<String>,
}

/// The flags for `go mod edit` in the wrapper, from the module's own go.mod as JSON.
pub fn wrapper_flags(go_mod_json: &str, version: &str) -> Result<Vec<String>, serde_json::Error> {
    let go_mod: GoMod = serde_json::from_str(go_mod_json)?;
    let required = go_mod.require.unwrap_or_default();
    let mut flags: Vec<String> = go_mod.go.iter().map(|go| format!("-go={go}")).collect();
    for Replace { old, new } in go_mod.replace.unwrap_or_default() {
        if let Some(new_version) = &new.version {
            let of = old
                .version
                .as_ref()
                .map(|v| format!("@{v}"))
                .unwrap_or_default();
            flags.push(format!(
                "-replace={}{of}={}@{new_version}",
                old.path, new.path
            ));
        } else if is_unpublished(&required, &old.path) {
            flags.push(format!(
                "-replace={}={}@{}",
                old.path,
                old.path,
                staging_version(version)
            ));
        }
        // Any other local directory: the required version is a published one, and nothing is needed.
    }
    Ok(flags)
}

fn is_unpublished(required: &[Module], path: &str) -> bool {
    required
        .iter()
        .any(|m| m.path == path && m.version.as_deref() == Some("v0.0.0"))
}

/// Kubernetes v1.34.4 is published as v0.34.4 of its staging modules.
fn staging_version(version: &str) -> String {
    version.replacen("v1.", "v0.", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_modules_become_their_published_versions() {
        let go_mod = r#"{"Go": "1.24.0",
            "Require": [{"Path": "k8s.io/api", "Version": "v0.0.0"},
                        {"Path": "example.org/nearby", "Version": "v1.2.3"}],
            "Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
                        {"Old": {"Path": "example.org/nearby"}, "New": {"Path": "../nearby"}}]}"#;
        assert_eq!(
            wrapper_flags(go_mod, "v1.34.4").unwrap(),
            ["-go=1.24.0", "-replace=k8s.io/api=k8s.io/api@v0.34.4"],
        );
    }

    #[test]
    fn forks_are_taken_over_with_the_version_they_stand_for() {
        let go_mod = r#"{"Go": "1.25", "Require": null, "Replace": [
            {"Old": {"Path": "a.org/x"}, "New": {"Path": "b.org/x", "Version": "v2.0.1"}},
            {"Old": {"Path": "a.org/y", "Version": "v1.0.0"}, "New": {"Path": "b.org/y", "Version": "v1.0.1"}}]}"#;
        assert_eq!(
            wrapper_flags(go_mod, "v3.0.0").unwrap(),
            [
                "-go=1.25",
                "-replace=a.org/x=b.org/x@v2.0.1",
                "-replace=a.org/y@v1.0.0=b.org/y@v1.0.1"
            ],
        );
    }

    #[test]
    fn a_module_without_replacements_needs_only_its_go_version() {
        assert_eq!(
            wrapper_flags(r#"{"Go": "1.24"}"#, "v3.6.5").unwrap(),
            ["-go=1.24"]
        );
        assert!(wrapper_flags("not json", "v1").is_err());
    }
}
