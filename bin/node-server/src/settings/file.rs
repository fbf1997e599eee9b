//! The settings file: TOML with the long names of options as keys.

use super::error::{Hint, SettingsFileError, nearest};
use super::source::{is_boolean, options};
use crate::files;
use clap::{Arg, ArgAction, Command};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum length of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The values of a file. All of them belong to existing options.
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    /// Values for all commands.
    shared: BTreeMap<String, Setting>,
    /// Values for single commands, by the command's name.
    sections: BTreeMap<String, BTreeMap<String, Setting>>,
}

/// The value of an option in the file.
pub(super) struct Setting {
    pub(super) line: usize,
    value: Value,
}

enum Value {
    Flag(bool),
    List(Vec<String>),
}

impl Setting {
    /// Returns the arguments that would set the same value on the command line.
    pub(super) fn arguments(&self, long: &str) -> Vec<OsString> {
        match &self.value {
            Value::Flag(true) => vec![format!("--{long}").into()],
            Value::Flag(false) => Vec::new(),
            Value::List(values) => values.iter().map(|value| format!("--{long}={value}").into()).collect(),
        }
    }
}

impl SettingsFile {
    /// Reads the file for a program with the commands of `root`.
    pub(super) fn read(path: &Path, root: &Command) -> Result<Self, SettingsFileError> {
        let unreadable = |source| SettingsFileError::Read { path: path.to_owned(), source };
        let bytes = files::read_at_most(path, MAX_BYTES).map_err(unreadable)?;
        let bytes = bytes.ok_or_else(|| SettingsFileError::TooLarge { path: path.to_owned(), limit: MAX_BYTES })?;
        let text = str::from_utf8(&bytes).map_err(|error| SettingsFileError::Syntax {
            path: path.to_owned(),
            line: line_of(&bytes, error.valid_up_to()),
            message: "the file is not UTF-8".to_owned(),
        })?;
        Reader { path, text, root }.read()
    }

    /// Returns the value of an option of `command`; `None` if the file does not set it. `health` looks for the server
    /// where `run` listens, or `serve` or `dev` in a file without settings of `run`.
    pub(super) fn setting(&self, command: &str, long: &str) -> Option<&Setting> {
        let in_section = |name: &str| self.sections.get(name).and_then(|section| section.get(long));
        let server = ["run", "serve", "dev"].into_iter().find(|name| self.sections.contains_key(*name));
        let of_server = || in_section(server?).filter(|_| command == "health");
        in_section(command).or_else(of_server).or_else(|| self.shared.get(long))
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    root: &'a Command,
}

impl Reader<'_> {
    fn read(&self) -> Result<SettingsFile, SettingsFileError> {
        let document = DeTable::parse(self.text).map_err(|error| SettingsFileError::Syntax {
            path: self.path.to_owned(),
            line: self.line(error.span().map_or(0, |span| span.start)),
            message: error.message().lines().collect::<Vec<_>>().join(", "),
        })?;
        let commands: Vec<_> = self.root.get_subcommands().collect();
        let (mut shared, mut sections) = (BTreeMap::new(), BTreeMap::new());
        for (key, value) in document.get_ref() {
            let name = key.get_ref().as_ref();
            // An option and a command may have the same name, but the section is a table.
            if let DeValue::Table(table) = value.get_ref() {
                let with_options = || commands.iter().filter(|command| options(command).count() > 0);
                let command = *with_options().find(|command| command.get_name() == name).ok_or_else(|| {
                    SettingsFileError::UnknownSection {
                        path: self.path.to_owned(),
                        line: self.line(key.span().start),
                        name: name.to_owned(),
                        hint: hint(name, with_options().map(|command| command.get_name())),
                    }
                })?;
                let section = table.iter().map(|(key, value)| self.setting(key, value, &[command], name));
                sections.insert(name.to_owned(), section.collect::<Result<_, _>>()?);
            } else {
                let (key, setting) = self.setting(key, value, &commands, "any command")?;
                shared.insert(key, setting);
            }
        }
        Ok(SettingsFile { path: self.path.to_owned(), shared, sections })
    }

    /// Reads the value of an option of one of `commands`, which `of` describes.
    fn setting(
        &self,
        key: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
        commands: &[&Command],
        of: &str,
    ) -> Result<(String, Setting), SettingsFileError> {
        let (name, line) = (key.get_ref().as_ref(), self.line(key.span().start));
        let all = || commands.iter().flat_map(|command| options(command));
        let Some((option, _)) = all().find(|(_, long)| *long == name) else {
            let hint = hint(&name.replace('_', "-").to_lowercase(), all().map(|(_, long)| long));
            let (path, key, of) = (self.path.to_owned(), name.to_owned(), of.to_owned());
            return Err(SettingsFileError::Unknown { path, line, key, of, hint });
        };
        let value = value_of(option, value.get_ref()).map_err(|(found, expected)| SettingsFileError::Type {
            path: self.path.to_owned(),
            line,
            key: name.to_owned(),
            found,
            expected,
        })?;
        Ok((name.to_owned(), Setting { line, value }))
    }

    fn line(&self, offset: usize) -> usize {
        line_of(self.text.as_bytes(), offset)
    }
}

/// Returns the name that a misspelled one probably means.
fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Hint {
    Hint(nearest(name, known).map(str::to_owned))
}

/// Returns the line number of a byte, starting at 1.
fn line_of(text: &[u8], offset: usize) -> usize {
    1 + text.iter().take(offset).filter(|byte| **byte == b'\n').count()
}

/// Converts a TOML value. The error consists of the type found and the type expected.
fn value_of(option: &Arg, value: &DeValue<'_>) -> Result<Value, (&'static str, &'static str)> {
    let is_list = matches!(option.get_action(), ArgAction::Append);
    let expected = match option.get_action() {
        ArgAction::SetTrue => "true or false",
        _ if is_boolean(option) => "true or false",
        _ if is_list => "a string, a number, or a list of them",
        _ => "a string or a number",
    };
    let wrong = |value: &DeValue<'_>| (described(value), expected);
    match (option.get_action(), value) {
        (ArgAction::SetTrue, DeValue::Boolean(flag)) => Ok(Value::Flag(*flag)),
        (_, DeValue::Boolean(flag)) if is_boolean(option) => Ok(Value::List(vec![flag.to_string()])),
        (ArgAction::SetTrue, _) => Err(wrong(value)),
        _ if is_boolean(option) => Err(wrong(value)),
        (_, DeValue::Array(values)) if is_list => {
            let texts = values.iter().map(|value| text(value.get_ref()).ok_or_else(|| wrong(value.get_ref())));
            texts.collect::<Result<_, _>>().map(Value::List)
        }
        _ => text(value).map(|text| Value::List(vec![text])).ok_or_else(|| wrong(value)),
    }
}

/// Returns the text of a string or a number. Integers are written in decimal.
fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.as_ref().to_owned()),
        DeValue::Integer(number) => Some(match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.to_string(),
            Err(_) => number.as_str().to_owned(),
        }),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
