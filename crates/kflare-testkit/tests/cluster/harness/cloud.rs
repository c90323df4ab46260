//! A tenant's account, zone and tokens at Cloudflare, and other people's hands in it.

use kflare_sim::{CallRecord, FaultMatch, Grant, Seed, TokenSeed};
use serde_json::Value;

use super::tenant::{Tenant, Token};

impl Tenant<'_> {
    /// Makes a token with these permissions. The same name again changes the token.
    pub fn issue_token(&self, name: &str, permissions: Vec<Grant>) -> Token {
        let value = format!("token-{}-{name}", self.account);
        let known = self.tokens.lock().unwrap();
        let id = known.iter().find(|(_, it)| **it == value).map(|(id, _)| id.clone());
        drop(known);
        let token = TokenSeed {
            id,
            user: Some(format!("{}@example.com", self.account)),
            ..TokenSeed::of_user(&value, permissions)
        };
        let seed = Seed {
            tokens: vec![token],
            ..Seed::default()
        };
        let id = self.site.cloudflare.seed(&seed).unwrap().tokens[0].clone();
        self.tokens.lock().unwrap().insert(id.clone(), value.clone());
        Token { id, value }
    }

    /// The values of all tokens ever used. None of them may appear anywhere.
    pub fn token_values(&self) -> Vec<String> {
        self.tokens.lock().unwrap().values().cloned().collect()
    }

    /// The number of the last call so far.
    pub fn now(&self) -> u64 {
        self.site.cloudflare.calls().last().map_or(0, |call| call.sequence)
    }

    /// The calls made with the tenant's tokens after call number `since`.
    pub fn calls(&self, since: u64) -> Vec<CallRecord> {
        let tokens = self.tokens.lock().unwrap();
        let mut calls = self.site.cloudflare.calls_since(since);
        calls.retain(|call| call.token_id.as_ref().is_some_and(|id| tokens.contains_key(id)));
        calls
    }

    /// Of those, the ones that would change something.
    pub fn writes(&self, since: u64) -> Vec<CallRecord> {
        let mut calls = self.calls(since);
        calls.retain(|call| call.method != "GET");
        calls
    }

    /// Matches the calls of one route with the first token.
    pub fn route(&self, method: &str, template: &str) -> FaultMatch {
        FaultMatch::route(method, template).token(&self.token.id)
    }

    /// The tenant's zone as Cloudflare has it.
    pub fn remote_zone(&self) -> Option<Value> {
        let zones = self.site.cloudflare.zones();
        zones.into_iter().find(|zone| zone["name"] == *self.domain)
    }

    /// The records of the tenant's zone as Cloudflare has them.
    pub fn remote_records(&self) -> Vec<Value> {
        self.site.cloudflare.records(&self.domain).unwrap_or_default()
    }

    /// The records of one name, which may be relative.
    pub fn remote(&self, name: &str) -> Vec<Value> {
        let name = format!("{name}.{}", self.domain);
        let mut records = self.remote_records();
        records.retain(|record| record["name"] == *name);
        records
    }

    /// Somebody else makes a record. Returns its id.
    pub fn foreign_create(&self, body: &Value) -> String {
        let made = self
            .site
            .cloudflare
            .foreign_create(&self.domain, body.as_object().unwrap());
        made.unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Somebody else changes a record.
    pub fn foreign_patch(&self, id: &str, body: &Value) {
        let changed = self
            .site
            .cloudflare
            .foreign_patch(&self.domain, id, body.as_object().unwrap());
        changed.unwrap();
    }

    /// Somebody else deletes a record.
    pub fn foreign_delete(&self, id: &str) {
        self.site.cloudflare.foreign_delete(&self.domain, id).unwrap();
    }
}
