//! Our expressions among the braces of a program, which have meanings of their own there.

use std::ops::Range;

use super::scope::Scope;

/// Words of an expression that are no names from outside.
const KEYWORDS: [&str; 13] =
    ["not", "if", "else", "and", "or", "in", "is", "true", "false", "none", "True", "False", "range"];

/// The expression of ours that begins at `at`: `{{ … }}` whose first name is one that templates know. One that
/// is never closed reaches to the end of the text.
pub(super) fn expression(text: &str, at: usize) -> Option<Range<usize>> {
    let inner = text.get(at..)?.strip_prefix("{{")?;
    let name = first_name(inner)?;
    Scope::NAMES.contains(&name).then(|| at..at + 2 + length(inner))
}

/// Every part of code that seems to expect a value of ours: `{{ inputs.day` and its like. The range ends
/// where the path does. `item` and `index` are words that code has itself: they count only where they are ours.
pub(super) fn in_code(text: &str, item: bool) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("{{").filter_map(move |(at, braces)| {
        let path = text[at + braces.len()..].trim_start_matches(['-', '+']).trim_start();
        let (name, rest) = path.split_at(word(path));
        let part = |c: char| c.is_alphanumeric() || "_.[]'\"-".contains(c);
        let end = path.find(|c| !part(c)).unwrap_or(path.len());
        let known = Scope::NAMES.contains(&name) && (item || !["item", "index"].contains(&name));
        let ours = known && rest.starts_with(['.', '[']);
        ours.then(|| at..text.len() - path.len() + end)
    })
}

/// The first name in an expression, unless something comes before it that our expressions do not have.
fn first_name(inner: &str) -> Option<&str> {
    let mut rest = inner;
    loop {
        let next = rest.chars().next()?;
        let length = match next {
            '}' if rest.starts_with("}}") => return None,
            // Ours never begin so, and a line of braces is read once, not once for each of them.
            '{' if rest.starts_with("{{") => return None,
            '.' | '$' | '@' => return None,
            '\'' | '"' => quoted(rest)?,
            _ if word(rest) > 0 => word(rest),
            _ => next.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if next.is_alphabetic() && !KEYWORDS.contains(&token) {
            return (!is_call(token, after)).then_some(token);
        }
        rest = after;
    }
}

/// Whether `index` is the function of Go's templates, as in `{{ index .Tags 0 }}`.
fn is_call(name: &str, after: &str) -> bool {
    name == "index" && after.starts_with(' ') && after.trim_start().starts_with(['.', '$', '('])
}

/// How far the expression reaches after its `{{`, its `}}` included.
fn length(inner: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(next) = inner[at..].chars().next() {
        at += match next {
            '}' if depth == 0 && inner[at..].starts_with("}}") => return at + 2,
            '\'' | '"' => quoted(&inner[at..]).unwrap_or(inner.len() - at),
            _ => next.len_utf8(),
        };
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    inner.len()
}

/// The length of the word that a text begins with.
fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The length of the quoted text that a text begins with.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if next == quote => return Some(at + quote.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<&str> {
        let at = text.find("{{").unwrap();
        expression(text, at).map(|span| &text[span])
    }

    #[test]
    fn an_expression_is_ours_by_its_first_name() {
        for ours in [
            "{{ inputs.day }}",
            "{{inputs['day']}}",
            "{{- run.id -}}",
            "{{ (inputs.n + 1) * 2 }}",
            "{{ 'a }}' ~ outputs.x }}",
            "{{ 'yes' if inputs.dry else 'no' }}",
            "{{ not inputs.dry }}",
            "{{ range(inputs.n) | list }}",
            "{{ {'a': {'b': logical_date}}}}",
            "{{ index }}",
            "{{ index + 1 }}",
            "{{ item.name }}",
            "{{ secrets['api-key'] }}",
        ] {
            assert_eq!(found(&format!("x {ours}}} y")), Some(ours));
        }
    }

    #[test]
    fn braces_of_others_are_theirs() {
        for theirs in [
            "{{.Names}}",
            "{{ json .run }}",
            "{{ range .inputs }}",
            "{{ index .Tags 0 }}",
            "{{index $tags 0}}",
            "{{ $run }}",
            "{{ $1 = task }}",
            "{{",
            "{{ }}",
            "{{ }} run",
            "{{ 'run",
            "{{ runner }}",
            "{{ 1 }}",
        ] {
            assert_eq!(found(theirs), None, "{theirs}");
        }
    }

    #[test]
    fn a_long_row_of_braces_is_read_once() {
        for theirs in ["{{ ", "{{ (", "{{'"] {
            let text = theirs.repeat(300_000);
            assert!((0..text.len()).all(|at| expression(&text, at).is_none()), "{theirs}");
        }
    }

    #[test]
    fn in_code_only_a_path_counts() {
        let code = "{{run}} {{ 'a': 1 }} {{ inputs.day | x }} {{-task['name']}} {{ inputs }} {{ item.a }}";
        let found: Vec<&str> = in_code(code, false).map(|span| &code[span]).collect();
        assert_eq!(found, ["{{ inputs.day", "{{-task['name']"]);
        assert_eq!(in_code(code, true).count(), 3);
    }
}
