//! Decompression of request bodies (RFC 9110, section 8.4).

use crate::problem::HttpError;
use actix_web::http::header::HeaderValue;
use actix_web::web::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::io::Read;

/// Maximum window of zstd, as the exponent of a power of two (RFC 9659, section 3): 8 MiB.
#[cfg(feature = "compression")]
const ZSTD_WINDOW: u32 = 23;

/// Buffer of the brotli decoder, in bytes.
#[cfg(feature = "compression")]
const BROTLI_BUFFER: usize = 4_096;

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
    /// If the body is malformed, or has more than `limit` bytes when decompressed.
    pub(crate) fn unpack(self, packed: &[u8], limit: usize) -> Result<Bytes, HttpError> {
        match self {
            Self::Gzip => read(MultiGzDecoder::new(packed), limit),
            // RFC 1950, section 2.2. Raw data that begins like this would have a first block that is stored, with wrong
            // padding.
            Self::Deflate => match packed {
                [method, flags, ..] if method & 0xf == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0 => {
                    read(ZlibDecoder::new(packed), limit)
                }
                _ => read(DeflateDecoder::new(packed), limit),
            },
            #[cfg(feature = "compression")]
            Self::Brotli => read(brotli::Decompressor::new(packed, BROTLI_BUFFER), limit),
            #[cfg(feature = "compression")]
            Self::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| HttpError::BodyUnpackable)?;
                decoder.window_log_max(ZSTD_WINDOW).map_err(|_| HttpError::BodyUnpackable)?;
                read(decoder, limit)
            }
        }
    }
}

fn read(decoder: impl Read, limit: usize) -> Result<Bytes, HttpError> {
    let mut body = Vec::new();
    decoder.take(limit as u64 + 1).read_to_end(&mut body).map_err(|_| HttpError::BodyUnpackable)?;
    if body.len() > limit { Err(HttpError::BodyTooLarge { limit }) } else { Ok(body.into()) }
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
            assert_eq!(packing.unpack(&packed, 8).unwrap(), br#"{"A": 1}"#[..], "{packing:?}");
            assert!(matches!(packing.unpack(&packed, 7), Err(HttpError::BodyTooLarge { limit: 7 })), "{packing:?}");
            assert!(matches!(packing.unpack(b"nonsense", 99), Err(HttpError::BodyUnpackable)), "{packing:?}");
            // A few kilobytes that would become 64 MiB.
            let bomb = pack(packing, &vec![0; 64 << 20]);
            assert!(bomb.len() < 1 << 17, "{packing:?}: {}", bomb.len());
            assert!(matches!(packing.unpack(&bomb, 1 << 20), Err(HttpError::BodyTooLarge { .. })), "{packing:?}");
        }
    }

    #[test]
    fn unpacks_deflate_without_a_header() {
        for level in [Compression::none(), Compression::best()] {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(br#"{"A": 1}"#).unwrap();
            let packed = encoder.finish().unwrap();
            assert_eq!(Packing::Deflate.unpack(&packed, 8).unwrap(), br#"{"A": 1}"#[..]);
            assert!(matches!(Packing::Deflate.unpack(&packed, 7), Err(HttpError::BodyTooLarge { limit: 7 })));
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
}
