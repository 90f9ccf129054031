//! Members and what their roles let them do.

use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoEnumIterator as _, IntoStaticStr};
use utoipa::ToSchema;

use crate::auth::{Capability, Permission};
use crate::clock::Moment;
use crate::env::Env;
use crate::id::{MemberId, MerchantId};

/// Owners that a merchant may have.
pub const OWNERS_MAX: usize = 3;

/// What a member is to the merchant.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumIter, IntoStaticStr, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Answers for the account: may do everything, and approve what they made themselves.
    Owner,
    /// Runs the account.
    Admin,
    /// Builds against the API.
    Developer,
    /// Pays, and approves payments.
    Finance,
    /// Looks.
    Viewer,
}

impl Role {
    /// The word used on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::iter().find(|role| role.as_str() == text)
    }

    /// What the role brings with it. Everybody of a team may look at what is the merchant's.
    #[must_use]
    pub fn permissions(self) -> &'static [Permission] {
        use Permission::{
            BeneficiaryManage, CustomerTransactionView, KeyManage, MemberManage, PayoutApprove,
            PayoutBulkApprove, PayoutBulkUpload, PayoutCancel, PayoutCreate, SettingsManage,
            WebhookManage,
        };
        match self {
            Self::Owner => &[
                PayoutCreate,
                PayoutApprove,
                PayoutCancel,
                PayoutBulkUpload,
                PayoutBulkApprove,
                CustomerTransactionView,
                BeneficiaryManage,
                WebhookManage,
                KeyManage,
                MemberManage,
                SettingsManage,
            ],
            Self::Admin => &[
                PayoutCreate,
                PayoutApprove,
                PayoutCancel,
                PayoutBulkApprove,
                CustomerTransactionView,
                BeneficiaryManage,
                WebhookManage,
                KeyManage,
                MemberManage,
            ],
            Self::Developer => &[WebhookManage, KeyManage],
            Self::Finance => &[
                PayoutCreate,
                PayoutApprove,
                PayoutCancel,
                CustomerTransactionView,
                BeneficiaryManage,
            ],
            Self::Viewer => &[],
        }
    }
}

/// Whether a member may sign in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumIter, IntoStaticStr, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MemberStatus {
    /// Has not set a password yet.
    Invited,
    /// May sign in.
    Active,
    /// May not, until somebody sets them active again.
    Disabled,
    /// Is no member any more; the row stays for what they did.
    Removed,
}

impl MemberStatus {
    /// The word used on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::iter().find(|status| status.as_str() == text)
    }
}

/// A member of a merchant's team, without secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The id, which the audit log names.
    pub id: MemberId,
    /// Whose team it is.
    pub merchant_id: MerchantId,
    /// In lower case; one member of a team has it.
    pub email: String,
    /// For people.
    pub name: String,
    /// What they are to the merchant.
    pub role: Role,
    /// Permissions besides those of the role.
    pub permissions: Vec<Permission>,
    /// Whether they may sign in.
    pub status: MemberStatus,
    /// Whether they have set up one-time codes.
    pub has_otp: bool,
    /// Rises with every change that ends their sessions.
    pub generation: i64,
    /// Rises with every change.
    pub version: i64,
    /// Who invited them: an operator's name or a member's id.
    pub created_by: String,
    /// When.
    pub created_at: Moment,
    /// When they last changed.
    pub updated_at: Moment,
}

impl Member {
    /// Whether they have a permission, by their role or besides.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.role.permissions().contains(&permission) || self.permissions.contains(&permission)
    }

    /// Everything that they may do.
    #[must_use]
    pub fn all_permissions(&self) -> Vec<Permission> {
        Permission::iter().filter(|permission| self.may(*permission)).collect()
    }

    /// What a live key of theirs would have to be without: nobody hands out what they have not.
    #[must_use]
    pub fn lacks_for(
        &self,
        capabilities: &[Capability],
        permissions: &[Permission],
    ) -> Vec<Permission> {
        let needed = |permission: &Permission| {
            permissions.contains(permission)
                || capabilities.iter().any(|capability| capability.needs() == Some(*permission))
        };
        Permission::iter().filter(|it| needed(it) && !self.may(*it)).collect()
    }

    /// Whether they count as an owner of the account, now or as soon as they accept.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.role == Role::Owner
            && matches!(self.status, MemberStatus::Active | MemberStatus::Invited)
    }

    /// Whether they may approve what was made with a key of their own: only an owner in live; in
    /// the sandbox whoever may both make and approve it.
    #[must_use]
    pub fn may_approve_own(&self, env: Env, (make, approve): (Permission, Permission)) -> bool {
        match env {
            Env::Live => self.role == Role::Owner,
            Env::Test => self.may(make) && self.may(approve),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id as _;

    fn member(role: Role, permissions: &[Permission]) -> Member {
        Member {
            id: MemberId::from_text("mem_1".into()),
            merchant_id: MerchantId::from_text("c1".into()),
            email: "ada@example.com".into(),
            name: "Ada".into(),
            role,
            permissions: permissions.to_vec(),
            status: MemberStatus::Active,
            has_otp: false,
            generation: 1,
            version: 1,
            created_by: "operator".into(),
            created_at: Moment::default(),
            updated_at: Moment::default(),
        }
    }

    /// The matrix, as it is promised to merchants: a change of it is a change of the contract.
    #[test]
    fn what_each_role_may_do() {
        let words = |role: Role| {
            let words = member(role, &[]).all_permissions();
            words.into_iter().map(<&'static str>::from).collect::<Vec<_>>().join(" ")
        };
        let told = Role::iter().map(|role| format!("{}: {}", role.as_str(), words(role)));
        let told: Vec<String> = told.collect();
        assert_eq!(
            told.join("\n"),
            "owner: payout_create payout_approve payout_cancel payout_bulk_upload \
             payout_bulk_approve customer_transaction_view beneficiary_manage webhook_manage \
             key_manage member_manage settings_manage\n\
             admin: payout_create payout_approve payout_cancel payout_bulk_approve \
             customer_transaction_view beneficiary_manage webhook_manage key_manage member_manage\n\
             developer: webhook_manage key_manage\n\
             finance: payout_create payout_approve payout_cancel customer_transaction_view \
             beneficiary_manage\n\
             viewer: "
        );
    }

    #[test]
    fn nobody_hands_out_what_they_have_not() {
        use Capability::{Bulk, CollectionsCreate, PayoutCreate, PayoutFx};
        let developer = member(Role::Developer, &[]);
        let lacks = |member: &Member, capabilities: &[Capability]| {
            member.lacks_for(capabilities, &[Permission::WebhookManage])
        };
        assert!(lacks(&developer, &[CollectionsCreate]).is_empty());
        assert_eq!(lacks(&developer, &[PayoutCreate, PayoutFx]), [Permission::PayoutCreate]);
        let admin = member(Role::Admin, &[]);
        assert_eq!(lacks(&admin, &[PayoutCreate, Bulk]), [Permission::PayoutBulkUpload]);
        let trusted = member(Role::Admin, &[Permission::PayoutBulkUpload]);
        assert!(lacks(&trusted, &[PayoutCreate, Bulk]).is_empty());
        assert_eq!(
            admin.lacks_for(&[], &[Permission::PayoutBulkApprove, Permission::PayoutBulkUpload]),
            [Permission::PayoutBulkUpload]
        );
    }

    #[test]
    fn only_an_owner_agrees_with_themselves_about_real_money() {
        let single = (Permission::PayoutCreate, Permission::PayoutApprove);
        let bulk = (Permission::PayoutBulkUpload, Permission::PayoutBulkApprove);
        for (role, live, sandbox, sandbox_bulk) in [
            (Role::Owner, true, true, true),
            (Role::Admin, false, true, false),
            (Role::Finance, false, true, false),
            (Role::Developer, false, false, false),
        ] {
            let member = member(role, &[]);
            assert_eq!(member.may_approve_own(Env::Live, single), live, "{role:?}");
            assert_eq!(member.may_approve_own(Env::Test, single), sandbox, "{role:?}");
            assert_eq!(member.may_approve_own(Env::Test, bulk), sandbox_bulk, "{role:?}");
        }
    }
}
