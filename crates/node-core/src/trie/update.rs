//! Inserting and removing. Nodes are rebuilt on the way back from the key to the root; those that nobody else holds
//! are moved rather than copied.

use super::nibbles::{Nibbles, common_prefix};
use super::node::{Branch, Link, Node};
use node_types::Bytes;

/// The subtrie `link` with `value` at `path`.
pub(super) fn insert(link: Option<Link>, path: &[u8], value: Bytes) -> Link {
    let Some(link) = link else {
        return Node::Leaf { path: path.into(), value }.into();
    };
    match link.into_node() {
        Node::Leaf { path: own, .. } if *own == *path => Node::Leaf { path: own, value }.into(),
        Node::Leaf { path: own, value: old } => {
            let (shared, own) = own.split_at(common_prefix(&own, path));
            let mut branch = Branch::default();
            branch.insert(own, old);
            branch.insert(&path[shared.len()..], value);
            prepend(shared, Node::Branch(branch).into())
        }
        Node::Extension { path: own, child } => {
            let (shared, rest) = own.split_at(common_prefix(&own, path));
            let behind = &path[shared.len()..];
            match rest.split_first() {
                None => Node::Extension { path: own, child: insert(Some(child), behind, value) }.into(),
                Some((nibble, rest)) => {
                    let mut branch = Branch::default();
                    branch.children[usize::from(*nibble)] = Some(prepend(rest, child));
                    branch.insert(behind, value);
                    prepend(shared, Node::Branch(branch).into())
                }
            }
        }
        Node::Branch(mut branch) => {
            branch.insert(path, value);
            Node::Branch(branch).into()
        }
    }
}

/// The subtrie `link` without the value at `path`, which it must hold; none when nothing is left.
pub(super) fn remove(link: Link, path: &[u8]) -> Option<Link> {
    match link.into_node() {
        Node::Leaf { .. } => None,
        Node::Extension { path: own, child } => remove(child, &path[own.len()..]).map(|child| prepend(&own, child)),
        Node::Branch(mut branch) => {
            match path.split_first() {
                None => branch.value = None,
                Some((nibble, behind)) => {
                    let child = &mut branch.children[usize::from(*nibble)];
                    *child = child.take().and_then(|child| remove(child, behind));
                }
            }
            branch.collapse()
        }
    }
}

/// `link` with `prefix` before its path.
fn prepend(prefix: &[u8], link: Link) -> Link {
    if prefix.is_empty() {
        return link;
    }
    match link.node() {
        Node::Leaf { path, value } => Node::Leaf { path: path.behind(prefix), value: value.clone() }.into(),
        Node::Extension { path, child } => Node::Extension { path: path.behind(prefix), child: child.clone() }.into(),
        Node::Branch(_) => Node::Extension { path: prefix.into(), child: link }.into(),
    }
}

impl Branch {
    fn insert(&mut self, path: &[u8], value: Bytes) {
        match path.split_first() {
            None => self.value = Some(value),
            Some((nibble, behind)) => {
                let child = &mut self.children[usize::from(*nibble)];
                *child = Some(insert(child.take(), behind, value));
            }
        }
    }

    /// This branch, or what has to stand in its place when fewer than two entries are left.
    fn collapse(mut self) -> Option<Link> {
        let mut entries =
            self.children.iter().enumerate().filter(|(_, child)| child.is_some()).map(|(nibble, _)| nibble);
        match (entries.next(), entries.next(), &self.value) {
            (None, _, None) => None,
            (None, _, Some(value)) => Some(Node::Leaf { path: Nibbles::default(), value: value.clone() }.into()),
            (Some(nibble), None, None) => {
                let only = self.children[nibble].take()?;
                Some(prepend(&[nibble as u8], only))
            }
            _ => Some(Node::Branch(self).into()),
        }
    }
}
