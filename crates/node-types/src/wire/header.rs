//! The members of headers in JSON.

use super::{AddressData, Data, Quantity, Quantity64, Quantity256};
use crate::consensus::{BlockNonce, Bloom};
use crate::{Address, H256, U256};

/// The JSON form of a header field of type `F`.
pub trait HeaderMember<F>: Sized {
    /// Converts a field.
    fn of(field: &F) -> Self;

    /// Returns the field, or `None` if it is absent although every header has it.
    fn read(&self) -> Option<F>;
}

impl<T: Clone> HeaderMember<T> for Quantity<T> {
    fn of(field: &T) -> Self {
        Self(field.clone())
    }

    fn read(&self) -> Option<T> {
        Some(self.0.clone())
    }
}

impl<T: Clone> HeaderMember<T> for Data<T> {
    fn of(field: &T) -> Self {
        Self(field.clone())
    }

    fn read(&self) -> Option<T> {
        Some(self.0.clone())
    }
}

/// A hash as a number.
impl HeaderMember<H256> for Quantity256 {
    fn of(field: &H256) -> Self {
        Self(U256::from_big_endian(field.as_bytes()))
    }

    fn read(&self) -> Option<H256> {
        Some(H256(self.to_big_endian()))
    }
}

/// A field that the headers of earlier forks lack.
impl<F, M: HeaderMember<F>> HeaderMember<Option<F>> for Option<M> {
    fn of(field: &Option<F>) -> Self {
        field.as_ref().map(M::of)
    }

    fn read(&self) -> Option<Option<F>> {
        match self {
            None => Some(None),
            Some(member) => member.read().map(Some),
        }
    }
}

/// Implements [`HeaderMember`] for fields that are null while a block is pending.
macro_rules! null_while_pending {
    ($($field:ty => $member:ty),+) => {$(
        impl HeaderMember<$field> for Option<$member> {
            fn of(field: &$field) -> Self {
                Some(<$member>::of(field))
            }

            fn read(&self) -> Option<$field> {
                self.as_ref()?.read()
            }
        }
    )+};
}

null_while_pending!(u64 => Quantity64, Address => AddressData, Bloom => Data<Bloom>, BlockNonce => Data<BlockNonce>);

/// Declares an object with members of a header, like `wire_objects`. After the type of such a member follows the field
/// of [`Header`](crate::consensus::Header).
macro_rules! header_object {
    (
        $(#[$about:meta])* $object:ident as $schema:ident {
            $($(#[$member_about:meta])* $member:ident: $type:ty $(= $field:ident)?,)+
        }
    ) => {
        $crate::wire::decode::wire_objects! {
            $(#[$about])* response $object as $schema {
                $($(#[$member_about])* $member: $type,)+
            }
        }

        impl $object {
            /// Returns an object with the members of the header, and with defaults for all others.
            pub fn of(header: &crate::consensus::Header) -> Self {
                let mut object = Self::default();
                $($(object.$member = $crate::wire::HeaderMember::of(&header.$field);)?)+
                object
            }

            /// Returns the header without checking its hash, or `None` if a member is null that no header lacks.
            #[allow(clippy::needless_update, reason = "some objects have members for all fields")]
            fn unchecked_header(&self) -> Option<crate::consensus::Header> {
                Some(crate::consensus::Header {
                    $($($field: $crate::wire::HeaderMember::read(&self.$member)?,)?)+
                    ..crate::consensus::Header::default()
                })
            }
        }
    };
}
pub(super) use header_object;
