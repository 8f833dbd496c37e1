//! Claims about where requests may go.

use super::*;

fn check(policy: &Outgoing, host: &str, address: &str) -> Result<(), Refused> {
    policy.check(host, address.parse().unwrap())
}

fn read(only: &str, allowed: &str) -> Outgoing {
    Outgoing::read(Some(only), Some(allowed)).unwrap()
}

#[test]
fn nothing_within_is_called_however_it_is_written() {
    let usual = Outgoing::default();
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
    ] {
        let refused = check(&usual, "partner.example", address).unwrap_err();
        assert!(matches!(refused, Refused::Within { .. }), "{address}: {refused}");
        assert!(refused.to_string().contains("EBB_OUTGOING_ALLOW=partner.example"), "{refused}");
        check(&Outgoing::anywhere(), "partner.example", address).unwrap();
    }
    for address in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
        check(&usual, "partner.example", address).unwrap();
    }
}

#[test]
fn metadata_servers_are_called_by_nobody_whatever_is_allowed() {
    for policy in [
        Outgoing::default(),
        Outgoing::anywhere(),
        read("", "169.254.169.254, metadata.google.internal, fd00:ec2::254"),
        read("169.254.0.0/16", "169.254.0.0/16"),
    ] {
        for (host, address) in [
            ("169.254.169.254", "169.254.169.254"),
            ("innocent.example", "169.254.169.254"),
            ("innocent.example", "::ffff:169.254.169.254"),
            ("innocent.example", "64:ff9b::a9fe:a9fe"),
            ("innocent.example", "fd00:ec2::254"),
            ("innocent.example", "fe80::1"),
            ("innocent.example", "100.100.100.200"),
            ("Metadata.Google.Internal.", "8.8.8.8"),
        ] {
            let refused = check(&policy, host, address).unwrap_err();
            assert!(matches!(refused, Refused::Never(_)), "{host} {address}: {refused}");
        }
    }
}

#[test]
fn an_address_is_judged_however_a_url_writes_it() {
    let usual = Outgoing::default();
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
        assert!(usual.check_url(&url).is_err(), "{url}");
    }
    // What a name stands for is known once it is looked up.
    usual.check_url(&Url::parse("http://localhost/").unwrap()).unwrap();
    usual.check_url(&Url::parse("https://93.184.216.34/").unwrap()).unwrap();
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
fn where_hosts_are_named_nothing_else_is_called() {
    let policy = read("api.partner.example, *.hooks.example, 203.0.113.0/24, 10.5.0.0/16", "");
    check(&policy, "api.partner.example", "8.8.8.8").unwrap();
    check(&policy, "x.hooks.example", "8.8.8.8").unwrap();
    check(&policy, "203.0.113.9", "203.0.113.9").unwrap();
    check(&policy, "ledger", "10.5.0.1").unwrap();
    assert_eq!(check(&policy, "other.example", "8.8.8.8"), Err(Refused::NotNamed("other.example".into())));
    let rebound = check(&policy, "api.partner.example", "10.0.0.1").unwrap_err();
    assert!(matches!(rebound, Refused::Within { .. }), "a name that is wanted may turn to what is within");
}

#[test]
fn an_entry_that_is_no_host_is_said() {
    let problems = Outgoing::read(Some("https://a.example"), Some("10.0.0.0/33, ok.example")).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("EBB_OUTGOING_ONLY: `https://a.example`"), "{problems:?}");
    assert!(problems[1].starts_with("EBB_OUTGOING_ALLOW: `10.0.0.0/33`"), "{problems:?}");
}

#[tokio::test]
async fn a_name_is_judged_by_what_it_stands_for_when_it_is_connected_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let client = Outgoing::default().limit(reqwest::Client::builder(), 5, Reach::Abroad).build().unwrap();
    let error = client.get(&url).send().await.unwrap_err();
    let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let refused = chain.filter_map(|error| error.downcast_ref::<Refused>()).next();
    assert!(matches!(refused, Some(Refused::Within { .. })), "{error:?}");
}
