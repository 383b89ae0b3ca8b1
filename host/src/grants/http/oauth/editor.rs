//! The flags of `belljar grant` that write `oauth`.

use toml_edit::{Array, InlineTable, Item, TableLike, Value};

use crate::grants::edit::{EditError, Flag, GrantArgs, TomlShape};

/// The key.
const KEY: &str = "oauth";

/// The flag with the issuer.
const ISSUER: Flag = Flag {
    name: "oauth",
    value: "ISSUER",
    help: "Add access tokens of this authorization server to requests to the preceding origin; the provider cannot see them",
};

/// The flags that refine [`ISSUER`], each with its key.
const CLIENT: Flag = Flag {
    name: "oauth-client",
    value: "ID",
    help: "The client id of belljar at the authorization server of the preceding --oauth",
};
const SECRET: Flag = Flag {
    name: "oauth-secret",
    value: "${secret:NAME}",
    help: "The secret with belljar's password there. Without it, a person logs in: belljar login MOUNT",
};
const SCOPE: Flag = Flag { name: "oauth-scope", value: "SCOPE", help: "Ask for this scope there" };

/// All flags.
pub(in crate::grants::http) const OAUTH_FLAGS: [Flag; 4] = [ISSUER, CLIENT, SECRET, SCOPE];

/// Writes the values of the flags into the table of an origin.
///
/// # Errors
/// If a flag is missing, or a value has another form.
pub(in crate::grants::http) fn set_oauth(table: &mut dyn TableLike, args: &GrantArgs) -> Result<(), EditError> {
    let last = |flag: &Flag| args.flag_values(flag.name).last();
    let scopes: Vec<&str> = args.flag_values(SCOPE.name).collect();
    if last(&ISSUER).is_none() && last(&CLIENT).is_none() && last(&SECRET).is_none() && scopes.is_empty() {
        return Ok(());
    }
    let occupied = || EditError::Occupied { key: format!("http.{KEY}"), expected: TomlShape::Table };
    if !table.contains_key(KEY) {
        if last(&ISSUER).is_none() {
            return Err(EditError::Kind(OAuthFlagError::NoIssuer.into()));
        }
        table.insert(KEY, Item::Value(Value::InlineTable(InlineTable::new())));
    }
    let own = table.get_mut(KEY).and_then(Item::as_table_like_mut).ok_or_else(occupied)?;
    for (key, flag) in [("issuer", &ISSUER), ("client", &CLIENT)] {
        if let Some(value) = last(flag) {
            own.insert(key, value.into());
        }
    }
    if let Some(secret) = last(&SECRET) {
        // The error leaves out the value: it may be a secret.
        if !secret.starts_with("${secret:") {
            return Err(EditError::PrivateValue { flag: SECRET.name, expected: SECRET.value });
        }
        own.insert("secret", secret.into());
    }
    if !own.contains_key("client") {
        return Err(EditError::Kind(OAuthFlagError::NoClient.into()));
    }
    if !scopes.is_empty() {
        if !own.contains_key("scopes") {
            own.insert("scopes", Item::Value(Value::Array(Array::new())));
        }
        let list = own.get_mut("scopes").and_then(Item::as_array_mut).ok_or_else(occupied)?;
        for scope in scopes {
            if !list.iter().any(|known| known.as_str() == Some(scope)) {
                list.push(scope);
            }
        }
    }
    Ok(())
}

/// A flag is missing.
#[derive(Debug, thiserror::Error)]
enum OAuthFlagError {
    #[error("--oauth-client, --oauth-secret and --oauth-scope need an authorization server; add --oauth ISSUER")]
    NoIssuer,
    #[error("--oauth needs the client id of belljar at the authorization server; add --oauth-client ID")]
    NoClient,
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn set(source: &str, flags: &[(&'static str, &str)]) -> Result<String, EditError> {
        let mut doc: DocumentMut = source.parse().unwrap();
        let extra_flags = flags.iter().map(|(flag, value)| (*flag, (*value).to_owned())).collect();
        set_oauth(doc.as_table_mut(), &GrantArgs { value: "https://x.example".to_owned(), extra_flags })?;
        Ok(doc.to_string())
    }

    #[test]
    fn the_flags_write_and_extend_a_table() {
        let all = [
            ("oauth", "https://a.example"),
            ("oauth-client", "c"),
            ("oauth-secret", "${secret:s}"),
            ("oauth-scope", "r"),
            ("oauth-scope", "w"),
        ];
        let whole = "oauth = { issuer = \"https://a.example\", client = \"c\", secret = \"${secret:s}\", scopes = [\"r\", \"w\"] }\n";
        assert_eq!(set("", &all).unwrap(), whole);
        assert_eq!(
            set(whole, &[("oauth-scope", "w"), ("oauth-scope", "x")]).unwrap(),
            whole.replace("\"w\"", "\"w\", \"x\"")
        );
        assert_eq!(set(whole, &[]).unwrap(), whole);
    }

    #[test]
    fn a_missing_flag_is_named_and_a_value_that_may_be_a_secret_is_not() {
        let why = |flags: &[(&'static str, &str)]| set("", flags).unwrap_err().to_string();
        assert!(why(&[("oauth-client", "c")]).contains("add --oauth ISSUER"));
        assert!(why(&[("oauth", "https://a.example")]).contains("add --oauth-client ID"));
        let private = why(&[("oauth", "https://a.example"), ("oauth-client", "c"), ("oauth-secret", "s3cr3t")]);
        assert!(private.contains("--oauth-secret") && !private.contains("s3cr3t"), "{private}");
    }
}
