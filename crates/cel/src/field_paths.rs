//! Which fields of a parent and of its children an expression reads, found in its tree.
//!
//! A value is followed from its root through the selection of fields, elements of lists and variables of macros. Where it is
//! used in any other way, all of it counts as read: what is not understood costs memory, and never an answer.

use crate::field_projection::FieldProjection;
use crate::node::{CelFunctionCall, CelMacroLoop, ExprNode, LoopKind};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ValueOrigin {
    /// It is computed.
    Computed,
    /// The list of children, or some of them.
    Children,
    /// A field of the parent, or an element of it; an empty path is the parent itself.
    Parent(Vec<Box<str>>),
    /// A field of a child, or an element of it.
    Child(Vec<Box<str>>),
}

impl ValueOrigin {
    fn field(mut self, name: &str) -> ValueOrigin {
        match &mut self {
            ValueOrigin::Parent(path) | ValueOrigin::Child(path) => path.push(name.into()),
            ValueOrigin::Computed | ValueOrigin::Children => return ValueOrigin::Computed,
        }
        self
    }

    /// An element of the value, where that is a list.
    fn element(self) -> ValueOrigin {
        match self {
            ValueOrigin::Children => ValueOrigin::Child(Vec::new()),
            other => other,
        }
    }
}

/// The fields that an expression reads.
#[derive(Debug, Default)]
pub(crate) struct FieldPaths {
    pub(crate) parent: FieldProjection,
    pub(crate) child: FieldProjection,
    locals: Vec<ValueOrigin>,
}

impl FieldPaths {
    /// Finds the fields that an expression over `parent` and `children` reads.
    pub(crate) fn of_expression(node: &ExprNode) -> FieldPaths {
        let mut paths = FieldPaths::default();
        paths.read_whole(node);
        paths
    }

    fn projection_of(&mut self, origin: &ValueOrigin) -> Option<&mut FieldProjection> {
        match origin {
            ValueOrigin::Computed => None,
            ValueOrigin::Children => Some(&mut self.child),
            ValueOrigin::Parent(path) => Some(self.parent.field_at(path)),
            ValueOrigin::Child(path) => Some(self.child.field_at(path)),
        }
    }

    fn require(&mut self, origin: &ValueOrigin) {
        if let Some(field) = self.projection_of(origin) {
            field.require_whole();
        }
    }

    /// All of the value is read.
    fn read_whole(&mut self, node: &ExprNode) {
        let origin = self.follow(node);
        self.require(&origin);
    }

    fn read_all<'n>(&mut self, nodes: impl IntoIterator<Item = &'n ExprNode>) -> ValueOrigin {
        nodes.into_iter().for_each(|node| self.read_whole(node));
        ValueOrigin::Computed
    }

    /// Follows a value whose user says what is read of it.
    fn follow(&mut self, node: &ExprNode) -> ValueOrigin {
        match node {
            ExprNode::Null
            | ExprNode::Bool(_)
            | ExprNode::Int(_)
            | ExprNode::Uint(_)
            | ExprNode::Double(_)
            | ExprNode::Text(_)
            | ExprNode::Bytes(_)
            | ExprNode::Type(_)
            | ExprNode::WholeObject => ValueOrigin::Computed,
            ExprNode::TopLevelField(name) => match &**name {
                "parent" => ValueOrigin::Parent(Vec::new()),
                _ => ValueOrigin::Children,
            },
            ExprNode::Local(at) => self.locals.get(*at).cloned().unwrap_or(ValueOrigin::Computed),
            ExprNode::Select(of, name) | ExprNode::OptSelect(of, name) => self.follow(of).field(name),
            ExprNode::Has(of, name) => {
                // Only whether it is there.
                let field = self.follow(of).field(name);
                self.projection_of(&field);
                ValueOrigin::Computed
            }
            ExprNode::Index(nodes) | ExprNode::OptIndex(nodes) => self.follow_index(&nodes[0], &nodes[1]),
            ExprNode::Not(of) | ExprNode::Negate(of) => self.read_all([&**of]),
            ExprNode::And(terms) | ExprNode::Or(terms) => self.read_all(terms.iter()),
            ExprNode::If(nodes) => self.read_all(nodes.iter()),
            ExprNode::Equal(nodes, _)
            | ExprNode::Compare(_, nodes)
            | ExprNode::Arithmetic(_, nodes)
            | ExprNode::In(nodes) => self.read_all(nodes.iter()),
            ExprNode::List(elements) => self.read_all(elements.iter().map(|(node, _)| node)),
            ExprNode::Map(entries) => self.read_all(entries.iter().flat_map(|(key, value, _)| [key, value])),
            ExprNode::Call(call) => self.follow_call(call),
            ExprNode::Loop(called) => self.follow_loop(called),
            ExprNode::Bind(nodes) | ExprNode::OptMap(nodes, _) => {
                let bound = self.follow(&nodes[0]);
                self.follow_within(&[bound], &nodes[1])
            }
        }
    }

    /// Follows an expression in which these variables are known.
    fn follow_within(&mut self, variables: &[ValueOrigin], node: &ExprNode) -> ValueOrigin {
        let outside = self.locals.len();
        self.locals.extend_from_slice(variables);
        let origin = self.follow(node);
        self.locals.truncate(outside);
        origin
    }

    fn follow_index(&mut self, of: &ExprNode, key: &ExprNode) -> ValueOrigin {
        let origin = self.follow(of);
        match key {
            ExprNode::Text(name) => origin.field(name),
            ExprNode::Int(_) | ExprNode::Uint(_) => origin.element(),
            // A key that is not known before it is looked up.
            _ => {
                self.read_whole(key);
                if origin == ValueOrigin::Children {
                    return origin.element();
                }
                self.require(&origin);
                ValueOrigin::Computed
            }
        }
    }

    fn follow_call(&mut self, call: &CelFunctionCall) -> ValueOrigin {
        for argument in &call.args {
            let origin = self.follow(argument);
            // How many there are is known of every projection.
            if !(call.name == "size" && origin == ValueOrigin::Children) {
                self.require(&origin);
            }
        }
        ValueOrigin::Computed
    }

    fn follow_loop(&mut self, called: &CelMacroLoop) -> ValueOrigin {
        let range = self.follow(&called.range);
        let is_children = range == ValueOrigin::Children;
        let variables = match (&range, called.pairs) {
            (ValueOrigin::Children, true) => vec![ValueOrigin::Computed, range.clone().element()],
            (ValueOrigin::Children, false) => vec![range.clone().element()],
            // Keys of a map, or elements that may be looked at in any way.
            (_, true) => {
                self.require(&range);
                vec![ValueOrigin::Computed; 2]
            }
            (ValueOrigin::Computed, false) => vec![ValueOrigin::Computed],
            (_, false) if names_fields_alone(called, self.locals.len()) => {
                if let Some(field) = self.projection_of(&range) {
                    field.require_elements();
                }
                vec![range.clone()]
            }
            (_, false) => {
                self.require(&range);
                vec![ValueOrigin::Computed]
            }
        };
        for node in called.filter.iter().chain([&called.body]) {
            let value = self.follow_within(&variables, node);
            self.require(&value);
        }
        match called.kind {
            LoopKind::Filter | LoopKind::SortBy if is_children => ValueOrigin::Children,
            LoopKind::Filter | LoopKind::SortBy => range,
            _ => ValueOrigin::Computed,
        }
    }
}

/// Returns `true` if a loop looks at nothing but fields of its elements, so that these are maps, and at some of them.
fn names_fields_alone(called: &CelMacroLoop, variable: usize) -> bool {
    let mut uses = VariableUses { variable, of_fields: 0, others: 0 };
    called.filter.iter().chain([&called.body]).for_each(|node| uses.count(node));
    uses.others == 0 && uses.of_fields > 0
}

/// Number of uses of one variable.
struct VariableUses {
    variable: usize,
    /// As that of which a field is selected.
    of_fields: usize,
    others: usize,
}

impl VariableUses {
    fn is_variable(&self, node: &ExprNode) -> bool {
        matches!(node, ExprNode::Local(at) if *at == self.variable)
    }

    fn count(&mut self, node: &ExprNode) {
        match node {
            ExprNode::Select(of, _) | ExprNode::OptSelect(of, _) | ExprNode::Has(of, _)
                if self.is_variable(of) =>
            {
                self.of_fields += 1;
            }
            ExprNode::Index(nodes) | ExprNode::OptIndex(nodes)
                if self.is_variable(&nodes[0]) && matches!(nodes[1], ExprNode::Text(_)) =>
            {
                self.of_fields += 1;
            }
            _ if self.is_variable(node) => self.others += 1,
            _ => node.for_each_operand(&mut |operand| self.count(operand)),
        }
    }
}
