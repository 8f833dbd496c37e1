//! Syntax highlighting of YAML. What it does not recognise stays as it is.

use crate::show::{Markup, escaped};

/// The text with its keys, strings, numbers, templates and comments marked.
pub(crate) fn highlighted(source: &str) -> Markup {
    let lines: Vec<String> = source.lines().map(line).collect();
    Markup(lines.join("\n"))
}

fn line(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches([' ', '-']).len();
    let (lead, rest) = text.split_at(indent);
    if rest.starts_with('#') {
        return escaped(lead) + &marked("note", rest);
    }
    let is_key = |key: &str| {
        !key.is_empty() && key.chars().all(|letter| letter.is_alphanumeric() || "_-.$".contains(letter))
    };
    match rest.split_once(':') {
        Some((key, after)) if is_key(key) && (after.is_empty() || after.starts_with(' ')) => {
            escaped(lead) + &marked("key", key) + ":" + &value(after)
        }
        _ => escaped(lead) + &value(rest),
    }
}

/// A value after a key, or on its own.
fn value(text: &str) -> String {
    let (body, note) = match text.find(" #") {
        Some(place) if !text[..place].contains(['"', '\'']) => text.split_at(place),
        _ => (text, ""),
    };
    let plain = body.trim();
    let is_number = !plain.is_empty() && plain.parse::<f64>().is_ok();
    let shown = if is_number || ["true", "false", "null"].contains(&plain) {
        marked("num", body)
    } else if plain.len() > 1 && (plain.starts_with('"') || plain.starts_with('\'')) && !plain.contains("{{")
    {
        marked("str", body)
    } else {
        templates(body)
    };
    if note.is_empty() { shown } else { shown + &marked("note", note) }
}

/// Marks `{{ … }}`.
fn templates(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else { break };
        let (before, after) = rest.split_at(start);
        let (template, after) = after.split_at(length + 2);
        out += &escaped(before);
        out += &marked("tpl", template);
        rest = after;
    }
    out + &escaped(rest)
}

fn marked(class: &str, text: &str) -> String {
    format!("<span class=\"{class}\">{}</span>", escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_values_templates_and_comments_are_distinguished() {
        let Markup(html) = highlighted("name: hello # hi\n- at: 3\n  text: \"a {{ x }} b\"");
        assert_eq!(
            html,
            "<span class=\"key\">name</span>: hello<span class=\"note\"> # hi</span>\n\
             - <span class=\"key\">at</span>:<span class=\"num\"> 3</span>\n  \
             <span class=\"key\">text</span>: &quot;a <span class=\"tpl\">{{ x }}</span> b&quot;"
        );
    }

    #[test]
    fn nothing_in_it_becomes_part_of_the_page() {
        let Markup(html) = highlighted("<b>: <i>\n# </span><script>\nx: {{ <u> }}\n\"<s>\"");
        assert!(!["<b", "<i", "<u", "<script", "<s>"].iter().any(|tag| html.contains(tag)), "{html}");
    }
}
