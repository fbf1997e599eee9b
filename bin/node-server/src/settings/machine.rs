//! Defaults that fit the machine: limits of memory are lower where there is little.

use clap::Arg;
use clap::builder::OsStr;
use std::fs;
use std::path::Path;

/// The options whose defaults are at most a fraction of the memory, each with its unit in bytes.
const FITTED: [(&str, u64); 3] = [("cache-mb", 1 << 20), ("transfer-memory", 1), ("pool-bytes", 1)];

/// The fraction. Together with what has no such limit, the process stays below the whole; see docs/sizing.md.
const FRACTION: u64 = 8;

/// Lowers the default of an option that limits memory, if the machine has little of it.
pub(super) fn fit(argument: Arg) -> Arg {
    let unit = FITTED.iter().find(|(long, _)| argument.get_long() == Some(long)).map(|(_, unit)| unit);
    let default = argument.get_default_values().first().and_then(|default| default.to_str()?.parse::<u64>().ok());
    let (Some(unit), Some(default), Some(memory)) = (unit, default, memory()) else { return argument };
    let fitted = (memory / FRACTION / unit).clamp(1, default.max(1));
    argument.default_value(OsStr::from(fitted.to_string()))
}

/// Returns the memory that the process may use, in bytes: that of the machine, or the limit of the container, the
/// service or another control group. `None` if the system does not tell.
fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(limit(Path::new("/sys/fs/cgroup"), &groups)).min()
}

/// Returns the total memory in the text of `/proc/meminfo`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Returns the lowest limit of the control groups in `groups`, the text of `/proc/self/cgroup`, and of those above them.
fn limit(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        // Version 2 has one hierarchy, whose controllers are not listed.
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        let own = root.join(group);
        // In a container, the root of the hierarchy is its own group, whatever the text says.
        let above = own.ancestors().take_while(|folder| folder.starts_with(&root));
        let read = |folder: &Path| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        above.filter_map(read).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_counts() {
        assert_eq!(total("MemFree: 5 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert_eq!(total(""), None);
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let put = |file: &str, text: &str| {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(limit(root, "0::/a/b\n"), None);
        put("a/b/memory.max", "max\n");
        assert_eq!(limit(root, "0::/a/b\n"), None);
        put("a/memory.max", "1000\n");
        put("memory.max", "5000\n");
        assert_eq!(limit(root, "0::/a/b\n"), Some(1_000));
        assert_eq!(limit(root, "0::/not/here\n"), Some(5_000));
        put("memory/x/memory.limit_in_bytes", "300\n");
        assert_eq!(limit(root, "3:cpu:/x\n2:memory:/x\n"), Some(300));
    }

    #[test]
    fn defaults_are_lowered_but_not_raised() {
        let default = |long: &'static str, value: &'static str| {
            let fitted = fit(Arg::new(long).long(long).default_value(value));
            fitted.get_default_values()[0].to_str().unwrap().parse::<u64>().unwrap()
        };
        let huge = "9000000000000000000";
        assert_eq!(default("transfer-memory", huge), memory().map_or(9_000_000_000_000_000_000, |memory| memory / 8));
        assert_eq!(default("transfer-memory", "1"), 1);
        assert_eq!(default("port", huge), 9_000_000_000_000_000_000);
    }
}
