//! The static table of adapters.

use crate::claude::Claude;
use crate::codex::Codex;
use crate::generic::Generic;
use crate::opencode::Opencode;
use crate::tool::{Tool, ToolKind};

/// The adapter that serves `kind`.
#[must_use]
pub fn adapter(kind: &ToolKind) -> &'static dyn Tool {
    match kind {
        ToolKind::Claude => &Claude,
        ToolKind::Codex => &Codex,
        ToolKind::Opencode => &Opencode,
        ToolKind::Other(_) => &Generic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_finds_its_adapter() {
        for name in ["claude", "codex", "opencode"] {
            let kind = ToolKind::from_name(name);
            assert_eq!(adapter(&kind).kind(), kind);
        }
        assert_eq!(adapter(&ToolKind::from_name("aider")).kind(), ToolKind::Other(String::new()));
    }
}
