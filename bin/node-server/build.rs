//! Records the commit that the program is built from: that of the repository, or of the variable `BUILD_COMMIT` for a
//! build without one. Records the enabled features as well.

use std::env;
use std::process::Command;

/// The features in `Cargo.toml`.
const FEATURES: [&str; 4] = ["compression", "fast-crypto", "object-store", "tls"];

fn main() {
    println!("cargo::rerun-if-env-changed=BUILD_COMMIT");
    if let Some(path) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={path}");
    }
    let commit = env::var("BUILD_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo::rustc-env=COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    let is_enabled = |feature: &&str| {
        let variable = format!("CARGO_FEATURE_{}", feature.to_uppercase().replace('-', "_"));
        env::var_os(variable).is_some()
    };
    let enabled: Vec<_> = FEATURES.into_iter().filter(is_enabled).collect();
    let features = if enabled.is_empty() { "none".to_owned() } else { enabled.join(", ") };
    println!("cargo::rustc-env=FEATURES={features}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
