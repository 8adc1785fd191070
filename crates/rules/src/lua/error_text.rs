//! The words of a script's error: those of Lua and of the script itself. Anything else is a value of the object, and is
//! left out.

/// What stands for a word that is left out.
const LEFT_OUT: &str = "…";

/// Most bytes of a message that are looked at. What is shown of it is shorter.
const MAX_ERROR_BYTES: usize = 1024;

/// Every word in the messages of the interpreter, of its libraries and of ours.
const INTERPRETER_WORDS: &str = "a across after and argument arguments arithmetic array assertion at attempt \
    back bad be block boolean bool boundary break buffer by call cannot capture captures chain change class column \
    compare complex concat concatenate conversion converting coroutine date dead deeply does error expected failed \
    field find for form format found function got has have in index insert integer invalid is it iterate key large \
    length level limit line loop low Lua malformed many map memory metamethod metatable method missing modified modify \
    modulo module must NaN native nested next nil no not number object of on only operator option or order out \
    overflow pattern perform position possible precision protected range read readonly repeated replacement resulting \
    resume return running script size slice sorting specifier stack string String sub suspended table the this thread \
    to too trying unary undefined unfinished unknown unm unpack use userdata value values vector width with wrong \
    yield add mul div mod pow idiv len eq lt le JSON Yield C call's < <= == ~= > >= + - * / % ^ .. #";

/// Returns a message without the words that are neither Lua's nor the script's own. Its place, `name:line:`, stays.
pub(super) fn without_values(message: &str, name: &str, source: &str) -> String {
    let message = &message[..message.floor_char_boundary(MAX_ERROR_BYTES)];
    let (place, rest) = split_place(message, name, source);
    let words = rest.split_whitespace().map(|word| if may_stay(word, source) { word } else { LEFT_OUT });
    let mut text = place.to_owned();
    let mut before = "";
    for word in words {
        // Of several words in a row that are left out, one mark is enough: their number is a value too.
        if word == LEFT_OUT && before == LEFT_OUT {
            continue;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        before = word;
    }
    text
}

/// Splits `name:line:` off a message, if the source has that line.
fn split_place<'m>(message: &'m str, name: &str, source: &str) -> (&'m str, &'m str) {
    let line = message.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
    let digits = line.map_or(0, |line| line.bytes().take_while(u8::is_ascii_digit).count());
    let end = name.len() + 1 + digits;
    let number = line.and_then(|line| line[..digits].parse::<usize>().ok());
    match message.as_bytes().get(end) {
        Some(b':') if number.is_some_and(|line| line <= source.lines().count()) => message.split_at(end + 1),
        _ => ("", message),
    }
}

/// Returns `true` if a word, without what it is quoted in, is one of the interpreter's or stands in the source.
fn may_stay(word: &str, source: &str) -> bool {
    let inner = word.trim_matches(|c: char| c.is_ascii_punctuation() && !matches!(c, '_' | '<' | '>' | '='));
    // `#1` is the number of an argument.
    let ordinal = word.starts_with('#') && inner.len() <= 2 && inner.bytes().all(|b| b.is_ascii_digit());
    inner.is_empty()
        || ordinal
        || INTERPRETER_WORDS.split_whitespace().any(|known| known == inner)
        || stands_in(source, inner)
}

/// Returns `true` if the source has this text between two other characters than those of a word.
fn stands_in(source: &str, text: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(text).any(|(at, _)| {
        let (before, after) = (&source[..at], &source[at + text.len()..]);
        !before.ends_with(part) && !after.starts_with(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_lua_and_of_the_script_stay_and_values_do_not() {
        let source = "local phase = obj.status.phase\nerror('bad phase ' .. phase .. ': see the docs')";
        for (message, shown) in [
            ("h.lua:2: bad phase hunter2: see the docs", "h.lua:2: bad phase … see the docs"),
            ("h.lua:1: attempt to index nil with 'status'", "h.lua:1: attempt to index nil with 'status'"),
            ("h.lua:1: attempt to index nil with 'hunter2'", "h.lua:1: attempt to index nil with …"),
            (
                "h.lua:1: invalid argument #1 to 'rep' (number expected, got nil)",
                "h.lua:1: invalid argument #1 to … (number expected, got nil)",
            ),
            ("hunter2 and 4711 more words", "… and …"),
            ("h.lua:99999999999: x", "…"),
            ("h.lua:4711", "…"),
            ("attempt to compare nil < number", "attempt to compare nil < number"),
        ] {
            assert_eq!(without_values(message, "h.lua", source), shown, "{message}");
        }
    }

    #[test]
    fn a_part_of_a_word_of_the_script_is_not_one() {
        assert_eq!(without_values("x pha", "n", "local phase"), "…");
        assert_eq!(without_values("ä phase", "n", "local phase"), "… phase");
    }
}
