//! The faults of a request.

use super::problem::{EchoedValue, ErrorDetail};
use std::fmt;

/// Maximum number of faults that are listed. A hostile request could have millions.
const MAX_FAULTS: usize = 100;

/// Limits of a request that its decoder checks. By default nothing is limited.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Number of addresses of a log filter.
    pub addresses: ListLimit,
    /// Number of topics at one position of a log filter.
    pub topics: ListLimit,
    /// Number of storage slots of a proof.
    pub storage_keys: ListLimit,
    /// Number of percentiles of a fee history.
    pub percentiles: ListLimit,
    /// Number of blocks of a fee history.
    pub fee_history_blocks: u64,
    /// Number of blocks that are mined.
    pub mined_blocks: u64,
    /// The last timestamp of a block, in Unix seconds.
    pub last_timestamp: u64,
    /// Size of a price in wei per gas or per blob gas, in bits.
    pub price_bits: usize,
}

/// Maximum length of a list in a request.
#[derive(Clone, Copy, Debug)]
pub struct ListLimit {
    /// The maximum, inclusive.
    pub most: usize,
    /// The option that sets it, for the message of the fault.
    pub option: Option<&'static str>,
}

impl ListLimit {
    /// No limit.
    pub const NONE: Self = Self { most: usize::MAX, option: None };

    /// Returns the message for a list of `length` elements, whose plural is `items`, or `None` if it is within the limit.
    pub(super) fn exceeded_by(self, length: usize, items: &str) -> Option<String> {
        let Self { most, option } = self;
        let option = option.map(|option| format!(" (`{option}`)")).unwrap_or_default();
        (length > most).then(|| format!("expected at most {most} {items}, got {length}{option}"))
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            addresses: ListLimit::NONE,
            topics: ListLimit::NONE,
            storage_keys: ListLimit::NONE,
            percentiles: ListLimit::NONE,
            fee_history_blocks: u64::MAX,
            mined_blocks: u64::MAX,
            last_timestamp: u64::MAX,
            price_bits: 256,
        }
    }
}

/// The faults found so far.
#[derive(Debug, Default)]
pub struct Faults {
    details: Vec<ErrorDetail>,
    omitted: usize,
    limits: RequestLimits,
}

impl Faults {
    /// Starts without faults, for a request within `limits`.
    pub fn within(limits: RequestLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the limits of the request.
    pub fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    /// Adds a fault at `location`. `json` is the value there, if there is one.
    pub fn push(&mut self, location: Location<'_>, message: impl fmt::Display, json: Option<&str>) {
        if self.details.len() == MAX_FAULTS {
            self.omitted += 1;
            return;
        }
        self.details.push(ErrorDetail {
            location: location.to_string(),
            message: message.to_string(),
            value: json.map(EchoedValue::shortened),
        });
    }

    /// Adds a fault at `location`, where `text` was sent.
    pub(super) fn push_text(&mut self, location: Location<'_>, message: impl fmt::Display, text: &str) {
        // Further faults are only counted, and their texts need not be copied.
        let json = (self.details.len() < MAX_FAULTS).then(|| serde_json::Value::from(text).to_string());
        self.push(location, message, json.as_deref());
    }

    /// Returns whether no fault was added.
    pub fn is_empty(&self) -> bool {
        self.details.is_empty()
    }

    /// Returns how many faults were added.
    pub(super) fn count(&self) -> usize {
        self.details.len() + self.omitted
    }

    /// Returns the faults in the order in which they were found. After the first 100, one last entry has the number
    /// of further faults.
    pub fn into_details(mut self) -> Vec<ErrorDetail> {
        if self.omitted > 0 {
            let last = self.details.last().map_or("", |detail| detail.location.as_str());
            let part = last.split(['.', '[']).next().unwrap_or_default().to_owned();
            self.details.push(ErrorDetail::new(part, format!("{} more faults", self.omitted)));
        }
        self.details
    }
}

/// The location of a value in a request, displayed like `body.Topics[1]`.
#[derive(Clone, Copy, Debug)]
pub enum Location<'a> {
    /// A part of the request: `body`, `path`, `query`.
    Part(&'static str),
    /// A property of an object, or a named parameter.
    Property(&'a Location<'a>, &'a str),
    /// An element of an array.
    Element(&'a Location<'a>, usize),
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Longer names are always unexpected: the longest expected ones are storage slots, with 66 characters.
        const LONGEST_NAME: usize = 80;
        match self {
            Self::Part(part) => f.write_str(part),
            Self::Property(parent, name) if name.len() <= LONGEST_NAME => write!(f, "{parent}.{name}"),
            Self::Property(parent, name) => {
                write!(f, "{parent}.{}…", &name[..name.floor_char_boundary(LONGEST_NAME)])
            }
            Self::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
