//! Insertion and removal. Nodes are rebuilt from the key back to the root; nodes that are not shared are moved rather
//! than copied.

use super::NibblePath;
use super::node::{Branch, Link, Node};
use node_types::Bytes;

/// Returns `link`, whose position has `start` nibbles, with `value` set at `path`.
pub(super) fn insert(link: Option<Link>, start: usize, path: &NibblePath, value: Bytes) -> Link {
    let node = match link.map(Link::into_node) {
        None => Node::Leaf { path: *path, value },
        Some(Node::Leaf { path: own, .. }) if own == *path => Node::Leaf { path: own, value },
        Some(Node::Branch(mut branch)) if path.starts_with(&branch.path) => {
            branch.insert(path, value);
            Node::Branch(branch)
        }
        Some(Node::Leaf { path: own, value: old }) => {
            let mut branch = Branch::new(path.prefix(path.common(&own)));
            branch.insert(&own, old);
            branch.insert(path, value);
            Node::Branch(branch)
        }
        Some(Node::Branch(below)) => {
            let mut branch = Branch::new(path.prefix(path.common(&below.path)));
            let nibble = below.path.nibble(branch.path.len());
            branch.children[usize::from(nibble)] = Some(Link::new(Node::Branch(below), branch.path.len() + 1));
            branch.insert(path, value);
            Node::Branch(branch)
        }
    };
    Link::new(node, start)
}

/// Returns `link` without the value at `path`, which must exist, or `None` if nothing is left.
pub(super) fn remove(link: Link, path: &NibblePath) -> Option<Link> {
    let start = link.start();
    match link.into_node() {
        Node::Leaf { .. } => None,
        Node::Branch(mut branch) => {
            if path.len() == branch.path.len() {
                branch.value = None;
            } else {
                let child = &mut branch.children[usize::from(path.nibble(branch.path.len()))];
                *child = child.take().and_then(|child| remove(child, path));
            }
            branch.collapse().map(|node| Link::new(node, start))
        }
    }
}

impl Branch {
    /// Sets the value at `path`, which must begin with the path of the branch.
    fn insert(&mut self, path: &NibblePath, value: Bytes) {
        let start = self.path.len();
        if path.len() == start {
            self.value = Some(value);
        } else {
            let child = &mut self.children[usize::from(path.nibble(start))];
            *child = Some(insert(child.take(), start + 1, path, value));
        }
    }

    /// Returns this branch, or the node that replaces it if fewer than two entries are left.
    fn collapse(mut self) -> Option<Node> {
        let mut entries = self.children.iter_mut().filter(|child| child.is_some());
        match (entries.next(), entries.next(), self.value.take()) {
            (None, _, None) => None,
            (None, _, Some(value)) => Some(Node::Leaf { path: self.path, value }),
            (Some(only), None, None) => only.take().map(Link::into_node),
            (Some(_), _, value) => {
                self.value = value;
                Some(Node::Branch(self))
            }
        }
    }
}
