//! What tree-sitter tells about a source file.
