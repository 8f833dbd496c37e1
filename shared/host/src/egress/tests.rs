//! Tests of the egress policy.

use super::*;

fn check(policy: &EgressPolicy, host: &str, address: &str) -> Result<(), Blocked> {
    policy.check(host, address.parse().unwrap())
}

fn read(only: &str, allowed: &str) -> EgressPolicy {
    EgressPolicy::read(Some(only), Some(allowed)).unwrap()
}

#[test]
fn internal_addresses_are_blocked_in_every_notation() {
    let default = EgressPolicy::default();
    for address in [
        "127.0.0.1",
        "127.255.1.2",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "0.1.2.3",
        "198.18.0.1",
        "192.0.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fc00::1",
        "fd12:3456::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "::5",
        "::ffff:0:10.0.0.1",
        "64:ff9b:1::a00:1",
        "64:ff9b:1:a00:0:100::",
        "64:ff9b:1:a:0:1::",
        "64:ff9b:1:0:a:0:100:0",
        "2001:0:a00:1::f5ff:fffe",
        "2001:0:808:808::f5ff:fffe",
        "2001:0:a00:1::f7f7:f7f7",
        "2606:4700::5efe:10.0.0.1",
        "2606:4700::200:5efe:10.0.0.1",
    ] {
        let blocked = check(&default, "partner.example", address).unwrap_err();
        assert!(matches!(blocked, Blocked::Internal { .. }), "{address}: {blocked}");
        assert!(blocked.to_string().contains("EBB_EGRESS_ALLOW=partner.example"), "{blocked}");
        check(&EgressPolicy::allow_internal(), "partner.example", address).unwrap();
    }
    for address in [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ] {
        check(&default, "partner.example", address).unwrap();
    }
}

#[test]
fn metadata_servers_are_blocked_under_every_policy() {
    for policy in [
        EgressPolicy::default(),
        EgressPolicy::allow_internal(),
        read("", "169.254.169.254, metadata.google.internal, fd00:ec2::254"),
        read("169.254.0.0/16", "169.254.0.0/16"),
    ] {
        for (host, address) in [
            ("169.254.169.254", "169.254.169.254"),
            ("innocent.example", "169.254.169.254"),
            ("innocent.example", "::ffff:169.254.169.254"),
            ("innocent.example", "64:ff9b::a9fe:a9fe"),
            ("innocent.example", "fd00:ec2::254"),
            ("innocent.example", "fd20:ce::254"),
            ("innocent.example", "::169.254.169.254"),
            ("innocent.example", "::ffff:0:169.254.169.254"),
            ("innocent.example", "64:ff9b:1::169.254.169.254"),
            ("innocent.example", "64:ff9b:1:a9fe:a9:fe00::"),
            ("innocent.example", "64:ff9b:1:a9:fe:a9fe::"),
            ("innocent.example", "64:ff9b:1:0:a9:fea9:fe00:0"),
            ("innocent.example", "2002:a9fe:a9fe::1"),
            ("innocent.example", "2001:0:a9fe:a9fe::1"),
            ("innocent.example", "2001:0:808:808::5601:5601"),
            ("innocent.example", "2606:4700::5efe:169.254.169.254"),
            ("innocent.example", "168.63.129.16"),
            ("innocent.example", "fe80::1"),
            ("innocent.example", "100.100.100.200"),
            ("Metadata.Google.Internal.", "8.8.8.8"),
        ] {
            let blocked = check(&policy, host, address).unwrap_err();
            assert!(matches!(blocked, Blocked::Metadata(_)), "{host} {address}: {blocked}");
        }
    }
}

#[test]
fn internal_addresses_are_blocked_in_every_url_notation() {
    let default = EgressPolicy::default();
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://user@169.254.169.254/computeMetadata/v1/",
        "http://METADATA.google.internal./",
        "http://０.0.0.0/",
    ] {
        let url = Url::parse(url).unwrap();
        assert!(default.check_url(&url).is_err(), "{url}");
    }
    // A name is checked once it is resolved.
    default.check_url(&Url::parse("http://localhost/").unwrap()).unwrap();
    default.check_url(&Url::parse("https://93.184.216.34/").unwrap()).unwrap();
}

#[test]
fn an_embedded_address_is_allowed_only_as_itself() {
    let mapped = "::ffff:10.0.0.1";
    assert!(check(&read("", "::/0"), "partner.example", mapped).is_err(), "a range of IPv6 allows no IPv4");
    check(&read("", "10.0.0.0/8"), "partner.example", mapped).unwrap();
    check(&read("", "::1"), "localhost", "::1").unwrap();
    check(&read("", "nat64.example"), "nat64.example", "64:ff9b:1::a00:1").unwrap();
}

#[test]
fn operators_allow_hosts_domains_and_ranges() {
    let policy = read("", "warehouse.internal, *.corp.example, 10.1.0.0/16");
    check(&policy, "warehouse.internal", "10.9.9.9").unwrap();
    check(&policy, "Warehouse.Internal.", "10.9.9.9").unwrap();
    check(&policy, "a.b.corp.example", "192.168.0.9").unwrap();
    check(&policy, "anything.example", "10.1.200.3").unwrap();
    check(&policy, "outside.example", "8.8.8.8").unwrap();
    for (host, address) in [
        ("corp.example", "192.168.0.9"),
        ("evilcorp.example", "192.168.0.9"),
        ("anything.example", "10.2.0.1"),
    ] {
        assert!(check(&policy, host, address).is_err(), "{host} {address}");
    }
}

#[test]
fn an_allow_list_blocks_every_other_host() {
    let policy = read("api.partner.example, *.hooks.example, 203.0.113.0/24, 10.5.0.0/16", "");
    check(&policy, "api.partner.example", "8.8.8.8").unwrap();
    check(&policy, "x.hooks.example", "8.8.8.8").unwrap();
    check(&policy, "203.0.113.9", "203.0.113.9").unwrap();
    check(&policy, "ledger", "10.5.0.1").unwrap();
    assert_eq!(check(&policy, "other.example", "8.8.8.8"), Err(Blocked::NotListed("other.example".into())));
    let rebound = check(&policy, "api.partner.example", "10.0.0.1").unwrap_err();
    assert!(
        matches!(rebound, Blocked::Internal { .. }),
        "a listed name may be rebound to an internal address"
    );
}

#[test]
fn invalid_entries_are_reported() {
    let problems =
        EgressPolicy::read(Some("https://a.example"), Some("10.0.0.0/33, ok.example")).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("EBB_EGRESS_ONLY: `https://a.example`"), "{problems:?}");
    assert!(problems[1].starts_with("EBB_EGRESS_ALLOW: `10.0.0.0/33`"), "{problems:?}");
}

#[tokio::test]
async fn a_name_is_checked_by_the_address_of_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let client =
        EgressPolicy::default().apply(reqwest::Client::builder(), 5, Redirects::AnyHost).build().unwrap();
    let error = client.get(&url).send().await.unwrap_err();
    let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let blocked = chain.filter_map(|error| error.downcast_ref::<Blocked>()).next();
    assert!(matches!(blocked, Some(Blocked::Internal { .. })), "{error:?}");
}

#[test]
fn a_socket_needs_the_permission_of_the_operator() {
    let path = Path::new;
    let database = path("/cloudsql/project:region:ebbflow/.s.PGSQL.5432");
    for policy in
        [EgressPolicy::default(), EgressPolicy::allow_internal(), read("", "/cloudsql/project:region:other")]
    {
        let blocked = policy.check_socket(database).unwrap_err();
        assert!(blocked.to_string().contains("EBB_EGRESS_ALLOW=/cloudsql/project"), "{blocked}");
    }
    let policy = read("", "10.0.0.0/8, /cloudsql/project:region:warehouse");
    policy.check_socket(path("/cloudsql/project:region:warehouse/.s.PGSQL.5432")).unwrap();
    let around = path("/cloudsql/project:region:warehouse/../project:region:ebbflow/.s.PGSQL.5432");
    assert!(policy.check_socket(around).is_err());
}

#[tokio::test]
async fn a_host_resolves_to_allowed_addresses_only() {
    let blocked = EgressPolicy::default().resolve("localhost", 5432).await.unwrap_err();
    assert!(blocked.downcast::<Blocked>().is_ok());
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let allowed = EgressPolicy::allow_internal().resolve(host, 5432).await.unwrap();
        assert!(
            allowed.iter().all(|address| address.ip().is_loopback() && address.port() == 5432),
            "{allowed:?}"
        );
    }
    assert!(EgressPolicy::allow_internal().resolve("169.254.169.254", 80).await.is_err());
}
