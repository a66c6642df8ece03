//! A document as a tree of nodes with their places.
//!
//! Only of texts that the strict parser has read through without a complaint about syntax or size.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Span};

/// A place, both numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct At {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

/// A node where it is used; the content of an alias is that of its anchor.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) content: Rc<Content>,
}

#[derive(Debug)]
pub(super) enum Content {
    /// A scalar.
    Scalar {
        text: String,
        plain: bool,
        /// It stands in the text as it is, behind so many characters of quotes.
        verbatim: Option<u32>,
        tagged: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &*self.content {
            Content::Scalar { text, .. } => Some(text),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// The entries of a mapping. Those of a merged one (`<<`) stand behind its own, and only where it
    /// has none of that name; the last part says so.
    pub(super) fn entries(&self) -> Vec<(&Node, &Node, bool)> {
        let mut out = Vec::new();
        self.collect(&mut out, &mut HashSet::new(), false, 0);
        out
    }

    fn collect<'n>(
        &'n self,
        out: &mut Vec<(&'n Node, &'n Node, bool)>,
        known: &mut HashSet<&'n str>,
        merged: bool,
        depth: usize,
    ) {
        let Content::Map(pairs) = &*self.content else { return };
        let is_map = |node: &Node| matches!(&*node.content, Content::Map(_));
        let is_merge = |(key, value): &&(Node, Node)| {
            let named = matches!(&*key.content, Content::Scalar { text, plain: true, tagged: false, .. } if text == "<<");
            // Of anything else nothing would be left: then it is a key that nobody knows.
            named
                && match &*value.content {
                    Content::List(list) => list.iter().all(is_map),
                    Content::Map(_) | Content::Scalar { .. } => is_map(value),
                }
        };
        for (key, value) in pairs.iter().filter(|pair| !is_merge(pair)) {
            let new = key.text().is_none_or(|name| known.insert(name));
            if !merged || new {
                out.push((key, value, merged));
            }
        }
        // Aliases cannot lead to themselves; this bounds how far they lead to each other.
        if depth >= 8 {
            return;
        }
        for (_, value) in pairs.iter().filter(is_merge) {
            match &*value.content {
                Content::List(list) => list.iter().for_each(|each| each.collect(out, known, true, depth + 1)),
                Content::Map(_) => value.collect(out, known, true, depth + 1),
                Content::Scalar { .. } => {}
            }
        }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().into_iter().find(|(name, _, _)| name.text() == Some(key)).map(|(_, value, _)| value)
    }
}

/// A mapping or a list that is not closed yet.
struct Open {
    at: At,
    anchor: usize,
    map: bool,
    nodes: Vec<Node>,
}

/// The tree of a text; `None` when it is empty or cannot be read.
pub(super) fn read(text: &str) -> Option<Node> {
    let mut anchors: HashMap<usize, Node> = HashMap::new();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
        let at = place(&span);
        let done = match event {
            Event::Scalar(value, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let verbatim = match style {
                    ScalarStyle::Plain => Some(0),
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Some(1),
                    ScalarStyle::Literal | ScalarStyle::Folded => None,
                };
                let tagged = tag.is_some();
                let content = Content::Scalar { text: value.into_owned(), plain, verbatim, tagged };
                Some((Node { at, content: Rc::new(content) }, anchor))
            }
            Event::Alias(anchor) => {
                let named = anchors.get(&anchor)?;
                Some((Node { at, content: Rc::clone(&named.content) }, 0))
            }
            Event::SequenceStart(_, anchor, _) => {
                open.push(Open { at, anchor, map: false, nodes: Vec::new() });
                None
            }
            Event::MappingStart(_, anchor, _) => {
                open.push(Open { at, anchor, map: true, nodes: Vec::new() });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Open { at, anchor, map, nodes } = open.pop()?;
                let content = if map { Content::Map(pairs(nodes)) } else { Content::List(nodes) };
                Some((Node { at, content: Rc::new(content) }, anchor))
            }
            Event::StreamEnd | Event::DocumentEnd => return None,
            _ => None,
        };
        let Some((node, anchor)) = done else { continue };
        if anchor > 0 {
            anchors.insert(anchor, node.clone());
        }
        match open.last_mut() {
            Some(outer) => outer.nodes.push(node),
            None => return Some(node),
        }
    }
    None
}

fn pairs(nodes: Vec<Node>) -> Vec<(Node, Node)> {
    let mut out = Vec::with_capacity(nodes.len() / 2);
    let mut nodes = nodes.into_iter();
    while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
        out.push((key, value));
    }
    out
}

fn place(span: &Span) -> At {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    At { line: number(span.start.line()), column: number(span.start.col()).saturating_add(1) }
}
