//! Redirections, and the here-documents that they begin.

use super::super::commands::Role;
use super::nesting::MAX_DEPTH;
use super::{Body, Document, Frame, Scanner};

impl Scanner<'_> {
    /// Reads what begins with `<`, `>` or `&>`.
    pub(super) fn redirect(&mut self) {
        let rest = &self.text[self.at..];
        let substitutes = rest.starts_with("<(") || rest.starts_with(">(");
        if !substitutes {
            self.current().drop_number();
        }
        self.end_word();
        if rest.starts_with("<<<") {
            self.current().begin(Role::Input);
            self.skip(3);
        } else if let Some(rest) = rest.strip_prefix("<<") {
            self.announce(rest);
        } else if substitutes {
            if rest.starts_with('<') {
                self.current().begin(Role::Input);
            } else {
                self.current().begin(Role::Output);
            }
            self.skip(1);
        } else {
            self.current().begin(Role::File);
            let operators = ["&>>", "&>", ">>", ">&", ">|", "<>", "<&"];
            let operator = operators.iter().find(|operator| rest.starts_with(**operator));
            self.skip(operator.map_or(1, |operator| operator.len()));
        }
    }

    /// Notes the here-document that is named after `<<`.
    fn announce(&mut self, named: &str) {
        let word = named.strip_prefix('-').unwrap_or(named).trim_start_matches([' ', '\t']);
        let index = self.documents.len();
        let (tabs, is_code) = (named.starts_with('-'), self.current().runs_shell());
        let mut document = Document { tabs, is_code, index, ..Document::default() };
        let (mut quote, mut length) = (None, 0);
        for next in word.chars() {
            match next {
                _ if quote == Some(next) => quote = None,
                '\'' | '"' if quote.is_none() => (quote, document.literal) = (Some(next), true),
                '\\' if quote.is_none() => document.literal = true,
                _ if quote.is_none() && (next.is_whitespace() || ";&|<>()".contains(next)) => break,
                _ => document.delimiter.push(next),
            }
            length += next.len_utf8();
        }
        self.at += 2 + named.len() - word.len() + length;
        if length > 0 {
            self.waiting.push_back(document);
            self.documents.push(Body::default());
            let depth = self.commands.len();
            for (number, command) in
                self.commands.iter_mut().enumerate().skip(depth.saturating_sub(MAX_DEPTH))
            {
                command.push_document(index, number + 1 == depth);
            }
        }
    }

    /// Goes to the next line, where here-documents end and begin.
    pub(super) fn line(&mut self) {
        self.at += 1;
        loop {
            let line = self.text[self.at..].split('\n').next().unwrap_or_default();
            match self.frame() {
                Frame::Document(document) if document.ends(line) => {
                    self.frames.pop();
                    self.at = (self.at + line.len() + 1).min(self.text.len());
                }
                Frame::Document(document) if document.is_code => return self.computed.add_code(line),
                frame if frame.has_commands() && *frame != Frame::Backticks => {
                    let Some(document) = self.waiting.pop_front() else { return };
                    self.frames.push(Frame::Document(document));
                }
                _ => return,
            }
        }
    }
}
