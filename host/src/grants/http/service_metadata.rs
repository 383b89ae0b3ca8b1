//! The places of the metadata of an authorization server (RFC 8414, OpenID Connect Discovery).

use super::service_url::ServiceUrl;

/// The places of an issuer's metadata, in the order of the MCP specification.
pub fn places(issuer: &ServiceUrl) -> Vec<ServiceUrl> {
    let path = issuer.path.strip_suffix('/').unwrap_or(&issuer.path);
    let at = |path: String| ServiceUrl { path, ..issuer.clone() };
    let mut places = vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        places.push(at(format!("{path}/.well-known/openid-configuration")));
    }
    places
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_places_of_metadata() {
        let places = |issuer: &str| -> Vec<String> {
            super::places(&issuer.parse().unwrap()).iter().map(ToString::to_string).collect()
        };
        for root in ["https://a.example", "https://a.example/"] {
            assert_eq!(
                places(root),
                [
                    "https://a.example/.well-known/oauth-authorization-server",
                    "https://a.example/.well-known/openid-configuration",
                ]
            );
        }
        for tenant in ["https://a.example/t/1", "https://a.example/t/1/"] {
            assert_eq!(
                places(tenant),
                [
                    "https://a.example/.well-known/oauth-authorization-server/t/1",
                    "https://a.example/.well-known/openid-configuration/t/1",
                    "https://a.example/t/1/.well-known/openid-configuration",
                ]
            );
        }
    }
}
