//! The route table can be served: every template is one that the server's router takes, and none hides another.

use std::collections::BTreeSet;

use axum::Router;
use axum::routing::any;
use tangle_sandbox::contract::routes::{Plane, ROUTES};

#[test]
fn every_template_registers_beside_all_others() {
    let templates: BTreeSet<_> = ROUTES.iter().map(|route| route.template).collect();
    let mut router = Router::<()>::new();
    for template in &templates {
        router = router.route(template, any(|| async {}));
    }
    assert!(router.has_routes());
}

#[test]
fn a_template_lies_in_its_plane() {
    for route in ROUTES {
        let runtime = route.template.starts_with("/v1/sandboxes/{id}/runtime/");
        let control = route.template.starts_with("/v1/") && !runtime;
        match route.plane {
            Plane::Base => assert!(!runtime && !control, "{}", route.name),
            Plane::Control => assert!(control, "{}", route.name),
            Plane::Runtime => assert!(runtime, "{}", route.name),
        }
    }
}
