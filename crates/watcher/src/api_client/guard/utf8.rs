//! Replacement of bytes that are not UTF-8 before decoding: one of them would otherwise end a whole watch.

use bytes::{Bytes, BytesMut};

/// Turns a stream of chunks into valid UTF-8, also if a chunk ends within a character.
#[derive(Debug, Default)]
pub(crate) struct Utf8Sanitiser {
    /// Start of a character whose rest is in the next chunk; at most 3 bytes.
    carried: BytesMut,
}

impl Utf8Sanitiser {
    /// Returns the chunk as valid UTF-8, without copying if it already is.
    pub(crate) fn sanitise_chunk(&mut self, chunk: Bytes) -> Bytes {
        if self.carried.is_empty() {
            return self.split_incomplete(chunk);
        }
        let mut joined = std::mem::take(&mut self.carried);
        joined.extend_from_slice(&chunk);
        self.split_incomplete(joined.freeze())
    }

    /// Returns the rest at the end of the stream: an incomplete character.
    pub(crate) fn flush_carried(&mut self) -> Bytes {
        to_lossy_text(&std::mem::take(&mut self.carried))
    }

    fn split_incomplete(&mut self, chunk: Bytes) -> Bytes {
        let Err(error) = std::str::from_utf8(&chunk) else { return chunk };
        let whole = chunk.len() - incomplete_len(&chunk, error);
        self.carried.extend_from_slice(&chunk[whole..]);
        let text = chunk.slice(..whole);
        if std::str::from_utf8(&text).is_ok() { text } else { to_lossy_text(&text) }
    }
}

/// Returns the number of bytes at the end that begin a character which the next chunk may complete.
fn incomplete_len(chunk: &[u8], first: std::str::Utf8Error) -> usize {
    let mut at = 0;
    let mut error = first;
    loop {
        let Some(bad) = error.error_len() else { return chunk.len() - at - error.valid_up_to() };
        at += error.valid_up_to() + bad;
        match std::str::from_utf8(&chunk[at..]) {
            Ok(_) => return 0,
            Err(next) => error = next,
        }
    }
}

/// Returns the bytes as text, with U+FFFD for invalid ones.
pub(crate) fn to_lossy_text(bytes: &[u8]) -> Bytes {
    Bytes::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sanitised(chunks: &[&[u8]]) -> String {
        let mut sanitiser = Utf8Sanitiser::default();
        let mut out: Vec<u8> = Vec::new();
        for chunk in chunks {
            out.extend_from_slice(&sanitiser.sanitise_chunk(Bytes::copy_from_slice(chunk)));
        }
        out.extend_from_slice(&sanitiser.flush_carried());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_passes_as_it_is_wherever_it_is_cut() {
        let text = "größer – 愛 🎉 {\"a\":1}";
        for cut in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(cut);
            assert_eq!(sanitised(&[a, b]), text);
        }
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(sanitised(&single), text);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_the_rest_stays() {
        assert_eq!(sanitised(&[b"a\xff\xfeb\xc3"]), "a\u{fffd}\u{fffd}b\u{fffd}");
        assert_eq!(sanitised(&[b"a\xffb\xe6\x84", b"\x9bc"]), "a\u{fffd}b愛c");
        assert_eq!(sanitised(&[b"\xf0\x9f", b"x"]), "\u{fffd}x");
    }
}
