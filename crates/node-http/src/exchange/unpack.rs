//! Decompression of request bodies (RFC 9110, section 8.4).

use crate::problem::HttpError;
use actix_web::http::header::HeaderValue;
use actix_web::web::Bytes;
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use node_core::context::Context;
use node_core::node::NodeError;
use std::io::{self, BufRead, Read};

/// Maximum window of zstd, as the exponent of a power of two (RFC 9659, section 3): 8 MiB.
#[cfg(feature = "compression")]
const ZSTD_WINDOW: u32 = 23;

/// Buffer of the brotli decoder, in bytes.
#[cfg(feature = "compression")]
const BROTLI_BUFFER: usize = 4_096;

/// Maximum number of members of a gzip body (RFC 1952, section 2.2). Each one costs as much as decompressing some
/// kilobytes, even if it is empty.
const MAX_MEMBERS: usize = 1_024;

/// Number of compressed bytes after which the context is checked.
const PIECE: usize = 16 * 1024;

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    /// Deflate, in the zlib format as HTTP defines it, or without the zlib header, as some clients send it.
    Deflate,
    #[cfg(feature = "compression")]
    Brotli,
    #[cfg(feature = "compression")]
    Zstd,
}

impl Packing {
    /// Returns the compression that a `Content-Encoding` specifies, or `None` for a body that is not compressed.
    ///
    /// # Errors
    /// If it is not supported, or if there are several.
    pub(crate) fn of(encoding: &HeaderValue) -> Result<Option<Self>, HttpError> {
        let encoding = encoding.to_str().unwrap_or_default().trim().to_ascii_lowercase();
        Ok(Some(match &*encoding {
            "" | "identity" => return Ok(None),
            "gzip" | "x-gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            #[cfg(feature = "compression")]
            "br" => Self::Brotli,
            #[cfg(feature = "compression")]
            "zstd" => Self::Zstd,
            _ => return Err(HttpError::ContentEncoding),
        }))
    }

    /// Decompresses a body.
    ///
    /// # Errors
    /// If the body is malformed, or has more than `limit` bytes when decompressed, or the context is interrupted.
    pub(crate) fn unpack(self, context: &Context, packed: &[u8], limit: usize) -> Result<Bytes, HttpError> {
        let unpacked = self.unpack_within(Checked { rest: packed, context }, packed, limit);
        // The reason why the decoder could not read on.
        context.check().map_err(NodeError::from)?;
        unpacked
    }

    fn unpack_within(self, input: Checked<'_>, packed: &[u8], limit: usize) -> Result<Bytes, HttpError> {
        match self {
            Self::Gzip => unpack_members(input, limit),
            // RFC 1950, section 2.2. Raw data that begins like this would have a first block that is stored, with wrong
            // padding.
            Self::Deflate => match packed {
                [method, flags, ..] if method & 0xf == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0 => {
                    read(ZlibDecoder::new(input), limit)
                }
                _ => read(DeflateDecoder::new(input), limit),
            },
            #[cfg(feature = "compression")]
            Self::Brotli => read(brotli::Decompressor::new(input, BROTLI_BUFFER), limit),
            #[cfg(feature = "compression")]
            Self::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(input).map_err(|_| HttpError::BodyUnpackable)?;
                decoder.window_log_max(ZSTD_WINDOW).map_err(|_| HttpError::BodyUnpackable)?;
                read(decoder, limit)
            }
        }
    }
}

fn read(decoder: impl Read, limit: usize) -> Result<Bytes, HttpError> {
    let mut body = Vec::new();
    append(&mut body, decoder, limit)?;
    Ok(body.into())
}

/// Appends what `decoder` returns to a body of at most `limit` bytes.
fn append(body: &mut Vec<u8>, decoder: impl Read, limit: usize) -> Result<(), HttpError> {
    let more = (limit - body.len()) as u64 + 1;
    decoder.take(more).read_to_end(body).map_err(|_| HttpError::BodyUnpackable)?;
    if body.len() > limit { Err(HttpError::BodyTooLarge { limit }) } else { Ok(()) }
}

/// Decompresses the members of a gzip body.
fn unpack_members(mut input: Checked<'_>, limit: usize) -> Result<Bytes, HttpError> {
    let mut body = Vec::new();
    for _ in 0..MAX_MEMBERS {
        append(&mut body, GzDecoder::new(&mut input), limit)?;
        if input.rest.is_empty() {
            return Ok(body.into());
        }
    }
    Err(HttpError::TooManyMembers { limit: MAX_MEMBERS })
}

/// Compressed bytes, which cannot be read on once the context is interrupted: some bytes take long to decompress to
/// nothing.
struct Checked<'a> {
    rest: &'a [u8],
    context: &'a Context,
}

impl BufRead for Checked<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.context.check().map_err(io::Error::other)?;
        Ok(&self.rest[..self.rest.len().min(PIECE)])
    }

    fn consume(&mut self, amount: usize) {
        self.rest = &self.rest[amount..];
    }
}

impl Read for Checked<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buf)?;
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    fn pack(packing: Packing, body: &[u8]) -> Vec<u8> {
        match packing {
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(body).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(body).unwrap();
                encoder.finish().unwrap()
            }
            #[cfg(feature = "compression")]
            Packing::Brotli => {
                let mut packed = Vec::new();
                brotli::CompressorWriter::new(&mut packed, BROTLI_BUFFER, 5, 22).write_all(body).unwrap();
                packed
            }
            #[cfg(feature = "compression")]
            Packing::Zstd => zstd::encode_all(body, 0).unwrap(),
        }
    }

    #[test]
    fn unpacks_up_to_the_limit() {
        let all = [
            Packing::Gzip,
            Packing::Deflate,
            #[cfg(feature = "compression")]
            Packing::Brotli,
            #[cfg(feature = "compression")]
            Packing::Zstd,
        ];
        for packing in all {
            let packed = pack(packing, br#"{"A": 1}"#);
            assert_eq!(packing.unpack(&Context::unbounded(), &packed, 8).unwrap(), br#"{"A": 1}"#[..], "{packing:?}");
            assert!(
                matches!(packing.unpack(&Context::unbounded(), &packed, 7), Err(HttpError::BodyTooLarge { limit: 7 })),
                "{packing:?}"
            );
            assert!(
                matches!(packing.unpack(&Context::unbounded(), b"nonsense", 99), Err(HttpError::BodyUnpackable)),
                "{packing:?}"
            );
            // A few kilobytes that would become 64 MiB.
            let bomb = pack(packing, &vec![0; 64 << 20]);
            assert!(bomb.len() < 1 << 17, "{packing:?}: {}", bomb.len());
            assert!(
                matches!(packing.unpack(&Context::unbounded(), &bomb, 1 << 20), Err(HttpError::BodyTooLarge { .. })),
                "{packing:?}"
            );
        }
    }

    #[test]
    fn unpacks_deflate_without_a_header() {
        for level in [Compression::none(), Compression::best()] {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(br#"{"A": 1}"#).unwrap();
            let packed = encoder.finish().unwrap();
            assert_eq!(Packing::Deflate.unpack(&Context::unbounded(), &packed, 8).unwrap(), br#"{"A": 1}"#[..]);
            assert!(matches!(
                Packing::Deflate.unpack(&Context::unbounded(), &packed, 7),
                Err(HttpError::BodyTooLarge { limit: 7 })
            ));
        }
    }

    #[test]
    fn knows_one_encoding_at_a_time() {
        let cases = [
            ("gzip", Some(Some(Packing::Gzip))),
            ("GZIP", Some(Some(Packing::Gzip))),
            #[cfg(feature = "compression")]
            (" br ", Some(Some(Packing::Brotli))),
            ("identity", Some(None)),
            ("", Some(None)),
            ("gzip, br", None),
            ("compress", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Packing::of(&HeaderValue::from_static(text)).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn few_members_of_gzip_are_unpacked_and_many_refused() {
        let member = pack(Packing::Gzip, b"[1]");
        let unpacked = Packing::Gzip.unpack(&Context::unbounded(), &member.repeat(3), 100).unwrap();
        assert_eq!(unpacked, b"[1][1][1]"[..]);
        let too_long = Packing::Gzip.unpack(&Context::unbounded(), &member.repeat(3), 8);
        assert!(matches!(too_long, Err(HttpError::BodyTooLarge { limit: 8 })), "{too_long:?}");
        for (count, accepted) in [(MAX_MEMBERS, true), (MAX_MEMBERS + 1, false)] {
            let empty = pack(Packing::Gzip, b"").repeat(count);
            let unpacked = Packing::Gzip.unpack(&Context::unbounded(), &empty, 100);
            assert_eq!(unpacked.is_ok(), accepted, "{count}");
            let refused = matches!(unpacked, Err(HttpError::TooManyMembers { limit: MAX_MEMBERS }));
            assert_eq!(refused, !accepted, "{count}");
        }
    }

    #[test]
    fn unpacking_ends_at_the_deadline() {
        let over = Context::unbounded().with_timeout(std::time::Duration::ZERO);
        for packing in [Packing::Gzip, Packing::Deflate] {
            let refused = packing.unpack(&over, &pack(packing, b"[1]"), 100);
            assert!(matches!(refused, Err(HttpError::Node(NodeError::Interrupted(_)))), "{refused:?}");
        }
    }
}
