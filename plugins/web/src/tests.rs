//! Tests of the provider over recorded answers.
