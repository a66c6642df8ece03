fn main() {
    let p = std::env::args().nth(1).unwrap();
    let t = std::fs::read(&p).unwrap();
    let l: tree_sitter::Language = match p.rsplit('.').next().unwrap() {
        "py" => tree_sitter_python::LANGUAGE,
        "js" => tree_sitter_javascript::LANGUAGE,
        "ts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        "rs" => tree_sitter_rust::LANGUAGE,
        _ => tree_sitter_go::LANGUAGE,
    }
    .into();
    let mut ps = tree_sitter::Parser::new();
    ps.set_language(&l).unwrap();
    let tr = ps.parse(&t, None).unwrap();
    fn show(n: tree_sitter::Node, t: &[u8], d: usize) {
        let mut c = n.walk();
        if n.is_named() {
            let leaf = n.named_child_count() == 0;
            println!(
                "{}{}{}",
                "  ".repeat(d),
                n.kind(),
                if leaf { format!(" {:?}", n.utf8_text(t).unwrap()) } else { String::new() }
            );
        }
        if c.goto_first_child() {
            loop {
                let f = c.field_name();
                let k = c.node();
                if k.is_named() {
                    if let Some(f) = f {
                        print!("{}{f}: ", "  ".repeat(d + 1));
                    }
                    show(k, t, d + 1);
                }
                if !c.goto_next_sibling() {
                    break;
                }
            }
        }
    }
    show(tr.root_node(), &t, 0);
}
