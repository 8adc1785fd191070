//! `base64.encode` and `base64.decode`.

use crate::cel_type::CelType::{Bytes, Text};
use crate::fault::EvalFault;
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function};
use crate::value::CelValue;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("base64.encode", &[Bytes], Text, encode_base64),
    global_function("base64.decode", &[Text], Bytes, decode_base64),
];

const BASE64_ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode_base64<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Bytes(bytes)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_read(8 * bytes.len())?;
    cx.meter.charge_allocation(bytes.len() * 4 / 3 + 4)?;
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = group >> (18 - 6 * place) & 63;
            text.push(if place > chunk.len() { '=' } else { char::from(BASE64_ALPHABET[sextet as usize]) });
        }
    }
    Ok(CelValue::from_text(&text))
}

/// Decodes base64 with or without padding, as cel-go does.
fn decode_base64<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Text(text)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_read(8 * text.len())?;
    cx.meter.charge_allocation(text.len())?;
    let bytes = parse_base64(text).ok_or_else(|| EvalFault::from_message("illegal base64 data"))?;
    Ok(CelValue::Bytes(bytes.into()))
}

fn parse_base64(text: &str) -> Option<Vec<u8>> {
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
            group = group << 6 | u32::try_from(BASE64_ALPHABET.iter().position(|known| known == b)?).ok()?;
        }
        group <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}
