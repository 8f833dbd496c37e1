//! The database as Cloud SQL provides it: no superuser, a migrating user that may create roles, and a login per function.

use chrono::TimeDelta;
use embedded::{Durability, Kind, Options, Preference, Server};
use model::{Instant, TenantId};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use store::{Error, Postgres, Retention, Tenants};

const SWEEP: &str = "ebbflow-sweep@project.iam";
const TRIGGER: &str = "ebbflow-trigger@project.iam";
const DEPLOYER: &str = "ebbflow-deployer@project.iam";

/// A server whose administrator is the provider. We get `ebbflow`, which owns the database through a group.
struct CloudSql {
    server: Server,
    _folder: tempfile::TempDir,
}

impl CloudSql {
    async fn start(preference: Preference) -> Result<Self, embedded::Error> {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { preference, durability: Durability::None, ..Options::default() };
        let server = Server::start_with(&folder.path().join("server"), options).await?;
        let mut provider = PgConnection::connect(&server.url("postgres")).await.unwrap();
        for statement in [
            "create role cloudsqlsuperuser nologin createrole createdb".to_owned(),
            "create role ebbflow login createrole createdb in role cloudsqlsuperuser".to_owned(),
            format!("create role \"{SWEEP}\" login"),
            format!("create role \"{TRIGGER}\" login"),
            format!("create role \"{DEPLOYER}\" login"),
            "create database ebbflow owner cloudsqlsuperuser".to_owned(),
        ] {
            provider.execute(AssertSqlSafe(statement)).await.unwrap();
        }
        provider.close().await.unwrap();
        Ok(Self { server, _folder: folder })
    }

    fn url(&self, user: &str) -> String {
        let options: PgConnectOptions = self.server.url("ebbflow").parse().unwrap();
        options.username(user).to_url_lossy().to_string()
    }

    async fn user(&self, user: &str) -> PgConnection {
        PgConnection::connect(&self.url(user)).await.unwrap()
    }
}

async fn rejects(connection: &mut PgConnection, statement: &str) -> bool {
    let failed = connection.execute(AssertSqlSafe(statement.to_owned())).await;
    failed.is_err_and(|error| {
        error.as_database_error().and_then(|error| error.code()).as_deref() == Some("42501")
    })
}

fn now() -> Instant {
    Instant::from_timestamp(1_800_000_000, 0).unwrap()
}

/// Everything that a deploy, its functions and the next deploy do to the database.
async fn lives_through_deploys(cloud: CloudSql) -> Kind {
    let unprepared = Postgres::connect(&cloud.url(SWEEP), 1).await;
    assert!(matches!(unprepared, Err(Error::NotPrepared(_))), "{unprepared:?}");

    let users = [SWEEP, TRIGGER, DEPLOYER].map(str::to_owned);
    for _ in 0..2 {
        Postgres::migrate(&cloud.url("ebbflow")).await.unwrap();
        Postgres::grant_to(&cloud.url("ebbflow"), &users).await.unwrap();
    }

    // The sweep creates partitions, and another user alters their table.
    let sweep = Postgres::connect(&cloud.url(SWEEP), 2).await.unwrap();
    sweep.turn_pages(now(), now() - TimeDelta::days(30)).await.unwrap();
    Postgres::migrate(&cloud.url(DEPLOYER)).await.expect("a member needs no right to create roles");
    let options: PgConnectOptions = cloud.url(DEPLOYER).parse().unwrap();
    let mut deployer = options.options([("role", "ebbflow_owner")]).connect().await.unwrap();
    deployer.execute("alter table events add column note text").await.unwrap();
    sweep.turn_pages(now() + TimeDelta::days(90), now()).await.expect("it drops what it made");

    // Functions read and write, and isolate tenants.
    let trigger = Postgres::connect(&cloud.url(TRIGGER), 2).await.unwrap();
    let tenant = trigger.tenant("acme", now()).await.unwrap();
    let mut reading = trigger.reading_as(tenant).await.unwrap();
    let seen: Vec<i32> = sqlx::query_scalar("select id from tenants").fetch_all(&mut *reading).await.unwrap();
    assert_eq!(seen, [tenant.0]);
    drop(reading);
    assert_eq!(trigger.tenant_named("default").await.unwrap(), Some(TenantId::DEFAULT));

    // A login has no right but to assume the owner, which may do nothing outside its tables.
    let mut login = cloud.user(TRIGGER).await;
    for role in ["none", "ebbflow_owner"] {
        login.execute(AssertSqlSafe(format!("set role {role}"))).await.unwrap();
        for statement in ["create role intruder", "create database other", "set role cloudsqlsuperuser"] {
            assert!(rejects(&mut login, statement).await, "{statement} as {role}");
        }
    }
    login.execute("set role none").await.unwrap();
    login.close().await.unwrap();

    // Users own nothing, so the provider can drop them.
    trigger.pool().close().await;
    let mut provider = PgConnection::connect(&cloud.server.url("ebbflow")).await.unwrap();
    provider.execute(AssertSqlSafe(format!("drop role \"{TRIGGER}\""))).await.unwrap();
    let kind = cloud.server.kind().clone();
    let grant = format!("grant ebbflow to \"{SWEEP}\"");
    let rejected = rejects(&mut cloud.user("ebbflow").await, &grant).await;
    let version: i32 = sqlx::query_scalar("select current_setting('server_version_num')::integer")
        .fetch_one(&mut provider)
        .await
        .unwrap();
    assert_eq!(rejected, version >= 160_000, "a user may not grant itself from Postgres 16 on");
    drop((sweep, deployer, provider));
    cloud.server.stop().await;
    kind
}

/// Cloud SQL runs Postgres 15, where roles have more rights than from 16 on. Debian 12 has it, and `tests/run` installs it.
#[tokio::test]
async fn a_database_without_superuser_lives_through_deploys_on_the_installed_postgres() {
    let cloud = match CloudSql::start(Preference::Installed).await {
        Ok(cloud) => cloud,
        Err(embedded::Error::NotFound(what)) => return testkit::skip(&format!("there is no {what}")),
        Err(error) => panic!("{error}"),
    };
    let kind = lives_through_deploys(cloud).await;
    let Kind::Installed { version, .. } = kind else { panic!("{kind:?}") };
    if !version.starts_with("15.") {
        eprintln!("skipped: the rights of roles are tested with Postgres {version}, and not with 15");
    }
}

#[tokio::test]
async fn a_database_without_superuser_lives_through_deploys_on_the_compiled_in_postgres() {
    let kind = lives_through_deploys(CloudSql::start(Preference::Compiled).await.unwrap()).await;
    let Kind::Compiled { version } = kind else { panic!("{kind:?}") };
    assert!(version.starts_with("17."), "{version}: the installed one is 15, which accepts such a grant");
}
