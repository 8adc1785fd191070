//! `base64.encode` and `base64.decode`.

use super::super::value::Ty::{Bytes, Text};
use super::super::value::{Fault, Val};
use super::{Cx, Function, global, unfit};

pub(super) const TABLE: &[Function] =
    &[global("base64.encode", &[Bytes], Text, encode), global("base64.decode", &[Text], Bytes, decode)];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::Bytes(bytes)] = args else { return Err(unfit(args)) };
    cx.meter.read(8 * bytes.len())?;
    cx.meter.make(bytes.len() * 4 / 3 + 4)?;
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = group >> (18 - 6 * place) & 63;
            text.push(if place > chunk.len() { '=' } else { char::from(ALPHABET[sextet as usize]) });
        }
    }
    Ok(Val::text(&text))
}

/// With padding or without, as cel-go takes both.
fn decode<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::Text(text)] = args else { return Err(unfit(args)) };
    cx.meter.read(8 * text.len())?;
    cx.meter.make(text.len())?;
    let bytes = decoded(text).ok_or_else(|| Fault::words("illegal base64 data"))?;
    Ok(Val::Bytes(bytes.into()))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text[..text.len() - padding].chunks(4) {
        if chunk.len() == 1 {
            return None;
        }
        let mut group = 0u32;
        for b in chunk {
            group = group << 6 | ALPHABET.iter().position(|known| known == b)? as u32;
        }
        group <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}
