//! The types that are generated from the list of interfaces: [`Request`] for all calls, [`Reply`] for all replies, and
//! [`Exports`], which finds the functions in a component.

use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::function::{Function, ReplyLimits, Returned};
use super::list::for_each_interface;
use super::redaction;
use crate::grants::secrets::Redactor;
use crate::limits::Operation;
use crate::model::{Body, ReadError};
use crate::policy::Action;

/// The full name of an interface in a component. wasmtime lets version 0.1.0 match every 0.1.x.
fn full_name(interface: &str) -> String {
    format!("belljar:provider/{interface}@0.1.0")
}

/// A function of the list.
pub trait Exported: Function + Into<Request> {
    /// The reply of this function in `reply`. `None` if it is the reply of another function.
    fn reply(reply: Reply) -> Option<Self::Reply>;

    /// The call of this function in `request`. `None` if it calls another function.
    fn of(request: &Request) -> Option<&Self>;
}

/// Generates the types of this module from the list.
macro_rules! calls {
    ($($interface:ident $indices:ident $($optional:literal)?: $($function:ident),+;)+) => {
        $(use super::list::$interface;)+

        /// One function with its arguments: the content of a call.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Request {
            $($(#[doc = concat!("[`", stringify!($interface), "::", stringify!($function), "`].")]
            $function($interface::$function),)+)+
        }

        /// The unchecked reply of a guest to a [`Request`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Reply {
            $($(#[doc = concat!("To [`", stringify!($interface), "::", stringify!($function), "`].")]
            $function(<$interface::$function as Function>::Reply),)+)+
        }

        /// The interfaces that a component exports.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Interfaces {
            $(#[doc = concat!("`", stringify!($interface), "`.")]
            pub $interface: bool,)+
        }

        impl Interfaces {
            /// The interfaces among the exports of a component.
            pub fn of(exports: &[String]) -> Self {
                let has = |interface| {
                    let versions = format!("belljar:provider/{interface}@0.1.");
                    exports.iter().any(|export| export.starts_with(&versions))
                };
                Self { $($interface: has($interface::NAME),)+ }
            }

            /// The names of the exported optional interfaces.
            pub fn optional(self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$interface && is_optional!($($optional)?) {
                    names.push($interface::NAME);
                })+
                names
            }
        }

        /// A linked component whose exports have the types of the interfaces. It is ready to be instantiated.
        pub struct Exports<T: 'static> {
            pre: InstancePre<T>,
            $($interface: Option<$interface::$indices>,)+
        }

        impl<T: Send + 'static> Exports<T> {
            /// Finds the interfaces in the component. An optional interface may be missing.
            ///
            /// # Errors
            /// If an exported interface has other types, or the mandatory interface is missing.
            pub fn new(pre: InstancePre<T>) -> wasmtime::Result<Self> {
                let exports = |interface| pre.component().get_export_index(None, full_name(interface)).is_some();
                $(let $interface = match is_optional!($($optional)?) && !exports($interface::NAME) {
                    true => None,
                    false => Some($interface::$indices::new(&pre)?),
                };)+
                Ok(Self { $($interface,)+ pre })
            }

            /// Creates an instance.
            ///
            /// # Errors
            /// A trap or a limit.
            pub async fn instantiate(&self, store: &mut Store<T>) -> wasmtime::Result<Instance> {
                self.pre.instantiate_async(store).await
            }

            /// Calls one function of an instance of this component.
            ///
            /// # Errors
            /// The outer error is a trap or a limit, the inner one the provider's own error.
            pub async fn call(&self, store: &mut Store<T>, instance: &Instance, request: &Request) -> Returned<Reply> {
                match request {
                    $($(Request::$function(function) => match &self.$interface {
                        Some(indices) => {
                            Ok(function.call(indices, store, instance).await?.map(Reply::$function))
                        }
                        None => Ok(Err(ReadError::Internal(format!("{} is not exported", $interface::NAME)))),
                    },)+)+
                }
            }
        }

        impl Request {
            /// The action for which policy must allow this call.
            pub fn action(&self) -> Action {
                match self {
                    $($(Self::$function(_) => $interface::$function::ACTION,)+)+
                }
            }

            /// Prepares the arguments for a call with these limits.
            pub fn prepare(&mut self, limits: ReplyLimits) {
                match self {
                    $($(Self::$function(function) => function.prepare(limits),)+)+
                }
            }

            /// The reference, if this is a read.
            pub fn reference(&self) -> Option<&str> {
                match self {
                    $($(Self::$function(function) => function.reference(),)+)+
                }
            }
        }

        impl Operation for Request {
            fn name(&self) -> &'static str {
                match self {
                    $($(Self::$function(_) => $interface::$function::NAME,)+)+
                }
            }

            fn is_read(&self) -> bool {
                match self {
                    $($(Self::$function(_) => matches!($interface::$function::ACTION, Action::Read),)+)+
                }
            }

            fn is_tool_call(&self) -> bool {
                matches!(self, Self::CallTool(_))
            }

            fn caller_input(&self) -> Option<Vec<&str>> {
                match self {
                    $($(Self::$function(function) => function.input(),)+)+
                }
            }

            fn log_text(&self) -> Option<&str> {
                match self {
                    $($(Self::$function(function) => function.shown(),)+)+
                }
            }
        }

        impl Reply {
            /// The size of the reply in bytes, including a charge for each entry.
            pub fn bytes(&self) -> usize {
                match self {
                    $($(Self::$function(reply) => $interface::$function::bytes(reply),)+)+
                }
            }

            /// The bodies of the reply, in their order.
            pub fn bodies_mut(&mut self) -> Vec<&mut Body> {
                match self {
                    $($(Self::$function(reply) => $interface::$function::bodies_mut(reply),)+)+
                }
            }

            fn redact(&mut self, redactor: Option<&Redactor>) {
                match self {
                    $($(Self::$function(reply) => $interface::$function::redact(reply, redactor),)+)+
                }
            }
        }

        $($(impl From<$interface::$function> for Request {
            fn from(function: $interface::$function) -> Self {
                Self::$function(function)
            }
        }

        impl Exported for $interface::$function {
            fn reply(reply: Reply) -> Option<Self::Reply> {
                match reply {
                    Reply::$function(reply) => Some(reply),
                    _ => None,
                }
            }

            fn of(request: &Request) -> Option<&Self> {
                match request {
                    Request::$function(function) => Some(function),
                    _ => None,
                }
            }
        })+)+
    };
}

macro_rules! is_optional {
    () => {
        false
    };
    ($optional:literal) => {
        true
    };
}

for_each_interface!(calls);

/// Redacts the result of a call: masks secrets, and cleans the texts of errors.
pub fn redact_result(result: &mut Result<Reply, ReadError>, redactor: Option<&Redactor>) {
    match result {
        Ok(reply) => reply.redact(redactor),
        Err(error) => redaction::redact_error(error, redactor),
    }
}
