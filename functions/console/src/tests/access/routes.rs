//! The rows and the routes are the same.

use std::collections::BTreeSet;

use super::ROWS;

/// The text up to the bracket that closes what was opened before it.
fn until_closed(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|next| {
        depth += i32::from(next == '(') - i32::from(next == ')');
        depth == 0
    });
    &text[..end.expect("brackets are closed")]
}

#[test]
fn a_route_on_several_lines_is_read_to_its_end() {
    let route = "\n  get(a::b).post(c::d),\n).route(\"/x\", get(e))";
    assert_eq!(until_closed(route), "\n  get(a::b).post(c::d),\n");
}

#[test]
fn every_route_has_a_row() {
    let sources = [
        include_str!("../../pages.rs"),
        include_str!("../../pages/operations.rs"),
        include_str!("../../sign_in.rs"),
    ];
    let mut routes = BTreeSet::new();
    // A long route is written on several lines.
    let all = sources.iter().flat_map(|source| source.split(".route(").skip(1));
    for route in all {
        let (template, rest) = route.trim_start().strip_prefix('"').unwrap().split_once('"').unwrap();
        let handlers = until_closed(rest);
        for (method, verb) in [("GET", "get("), ("POST", "post(")] {
            if handlers.contains(verb) {
                routes.insert((method, template));
            }
        }
    }
    let rows: BTreeSet<(&str, &str)> = ROWS.iter().map(|row| (row.method, row.template)).collect();
    assert_eq!(rows, routes, "a new route needs a row that says who may use it");
}
