//! Objects that are encoded as the list of their fields.

use super::{DecodeError, Items};
use crate::consensus::Bloom;
use crate::rlp::string_header;
use crate::{Address, Bytes, H256, U256};
use rlp::RlpStream;

/// A value that is an item of a list.
pub(in crate::consensus) trait Item: Sized {
    /// Reads the value. `name` is for errors.
    fn read(items: &mut Items<'_>, name: &'static str) -> Result<Self, DecodeError>;

    /// Appends the value to an open list.
    fn append(&self, stream: &mut RlpStream);

    /// Returns whether the list ends before the value.
    fn is_absent(&self) -> bool {
        false
    }
}

/// The encoded fields of an object, which [`record!`] implements.
pub(in crate::consensus) trait Fields {
    fn read_fields(items: &mut Items<'_>) -> Result<Self, DecodeError>
    where
        Self: Sized;

    /// Returns the number of items that [`append_fields`](Self::append_fields) appends.
    fn count(&self) -> usize;

    /// Appends the fields to an open list.
    fn append_fields(&self, stream: &mut RlpStream);
}

/// Declares a struct, and with it the encoding of its fields in the order of declaration.
///
/// The text after a field's type is its name in errors; fields without a text are not encoded. A closure after the text
/// reads the field instead of its type's [`Item::read`].
macro_rules! record {
    ($(#[$meta:meta])* pub struct $record:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(= $name:literal $(, $read:expr)?)?;)+
    }) => {
        $(#[$meta])*
        pub struct $record {
            $($(#[$field_meta])* pub $field: $type,)+
        }

        impl $crate::consensus::codec::Fields for $record {
            fn read_fields(
                items: &mut $crate::consensus::codec::Items<'_>,
            ) -> Result<Self, $crate::consensus::codec::DecodeError> {
                Ok(Self { $($field: $crate::consensus::codec::record!(@read items $($name $(, $read)?)?),)+ })
            }

            fn count(&self) -> usize {
                let present = [$($($crate::consensus::codec::record!(@is_present $name, self.$field),)?)+];
                present.iter().filter(|present| **present).count()
            }

            fn append_fields(&self, stream: &mut rlp::RlpStream) {
                $($($crate::consensus::codec::record!(@append $name, self.$field, stream);)?)+
            }
        }
    };
    (@read $items:ident) => { Default::default() };
    (@read $items:ident $name:literal) => { $crate::consensus::codec::Item::read($items, $name)? };
    (@read $items:ident $name:literal, $read:expr) => { $read($items, $name)? };
    (@is_present $name:literal, $value:expr) => { !$crate::consensus::codec::Item::is_absent(&$value) };
    (@append $name:literal, $value:expr, $stream:ident) => {
        $crate::consensus::codec::Item::append(&$value, $stream)
    };
}

/// Makes records items of lists: each is encoded as a nested list. The text is the object's name in errors.
macro_rules! items {
    ($($record:ty: $object:literal),+) => {$(
        impl $crate::consensus::codec::Item for $record {
            fn read(
                items: &mut $crate::consensus::codec::Items<'_>,
                _name: &'static str,
            ) -> Result<Self, $crate::consensus::codec::DecodeError> {
                items.record($object, <Self as $crate::consensus::codec::Fields>::read_fields)
            }

            fn append(&self, stream: &mut rlp::RlpStream) {
                stream.begin_list($crate::consensus::codec::Fields::count(self));
                $crate::consensus::codec::Fields::append_fields(self, stream);
            }
        }
    )+};
}

/// Makes records items of lists, and adds an encoding of single records.
macro_rules! objects {
    ($($record:ty: $object:literal),+) => {
        $crate::consensus::codec::items!($($record: $object),+);

        $(impl $record {
            /// Returns the RLP encoding of this value.
            pub fn encode(&self) -> Vec<u8> {
                rlp::Encodable::rlp_bytes(self).into()
            }

            /// Decodes the RLP encoding.
            ///
            /// # Errors
            /// Fails if `bytes` is not exactly one canonical encoding.
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::consensus::DecodeError> {
                $crate::consensus::codec::Items::exactly(bytes, $object, |items| {
                    $crate::consensus::codec::Item::read(items, $object)
                })
            }
        }

        impl rlp::Encodable for $record {
            fn rlp_append(&self, stream: &mut rlp::RlpStream) {
                $crate::consensus::codec::Item::append(self, stream);
            }
        }

        impl rlp::Decodable for $record {
            fn decode(rlp: &rlp::Rlp<'_>) -> Result<Self, rlp::DecoderError> {
                Ok(Self::decode(rlp.as_raw())?)
            }
        })+
    };
}

pub(in crate::consensus) use {items, objects, record};

/// Appends `bytes` as a string. Unlike the stream's own method it does not copy byte by byte.
pub(in crate::consensus) fn append_bytes(stream: &mut RlpStream, bytes: &[u8]) {
    // The header and the payload count as one item of the list.
    stream.append_raw(string_header(bytes).as_bytes(), 0).append_raw(bytes, 1);
}

/// Implements [`Item`] for integers.
macro_rules! integers {
    ($($type:ty: $from_bytes:expr),+) => {$(
        impl Item for $type {
            fn read(items: &mut Items<'_>, name: &'static str) -> Result<Self, DecodeError> {
                items.integer(name).map($from_bytes)
            }

            fn append(&self, stream: &mut RlpStream) {
                stream.append(self);
            }
        }
    )+};
}

integers!(u8: u8::from_be_bytes, u64: u64::from_be_bytes, U256: |bytes: [u8; 32]| U256::from_big_endian(&bytes));

/// Implements [`Item`] for byte strings of fixed length.
macro_rules! fixed {
    ($($type:ty: $from_bytes:expr, $as_bytes:expr);+) => {$(
        impl Item for $type {
            fn read(items: &mut Items<'_>, name: &'static str) -> Result<Self, DecodeError> {
                items.fixed(name).map($from_bytes)
            }

            fn append(&self, stream: &mut RlpStream) {
                let as_bytes: fn(&Self) -> &[u8] = $as_bytes;
                append_bytes(stream, as_bytes(self));
            }
        }
    )+};
}

fixed!(
    H256: H256, |hash| hash.as_bytes();
    Address: Address::from, |address| address.as_bytes();
    Bloom: Bloom, |bloom| &bloom.0;
    [u8; 8]: |bytes| bytes, |bytes| bytes
);

impl Item for Bytes {
    fn read(items: &mut Items<'_>, name: &'static str) -> Result<Self, DecodeError> {
        items.bytes(name).map(Self::from)
    }

    fn append(&self, stream: &mut RlpStream) {
        append_bytes(stream, self);
    }
}

/// A recipient: the empty string for a contract creation.
impl Item for Option<Address> {
    fn read(items: &mut Items<'_>, name: &'static str) -> Result<Self, DecodeError> {
        if items.skip_empty_string() { Ok(None) } else { Address::read(items, name).map(Some) }
    }

    fn append(&self, stream: &mut RlpStream) {
        append_bytes(stream, self.as_ref().map_or(&[], |address| address.as_bytes()));
    }
}

impl<T: Item> Item for Vec<T> {
    fn read(items: &mut Items<'_>, name: &'static str) -> Result<Self, DecodeError> {
        items.vec(name, |items| T::read(items, name))
    }

    fn append(&self, stream: &mut RlpStream) {
        stream.begin_list(self.len());
        self.iter().for_each(|item| item.append(stream));
    }
}

/// Implements [`Item`] for fields that end a list and that earlier forks do not have.
macro_rules! trailing {
    ($($type:ty $([$generics:ident: $bound:ident])?),+) => {$(
        impl$(<$generics: $bound>)? Item for Option<$type> {
            fn read(items: &mut Items<'_>, name: &'static str) -> Result<Self, DecodeError> {
                if items.is_empty() { Ok(None) } else { Item::read(items, name).map(Some) }
            }

            fn append(&self, stream: &mut RlpStream) {
                self.iter().for_each(|value| value.append(stream));
            }

            fn is_absent(&self) -> bool {
                self.is_none()
            }
        }
    )+};
}

trailing!(u64, H256, Vec<T> [T: Item]);
