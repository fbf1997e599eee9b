//! Random transactions: most are valid, others break a rule.

use super::chain::Model;
use super::code;
use super::random::Random;
use super::state::GAS_PER_BLOB;
use super::transaction::Sent;
use crate::wallet::{CHAIN_ID, with_high_s};
use node_dev::DevAccount;
use node_types::consensus::{
    AccessListItem, AccessListTransaction, Authorization, BlobSidecar, BlobTransaction, DynamicFeeTransaction,
    LegacyTransaction, PooledTransaction, SetCodeTransaction, Transaction, TransactionBody, versioned_hash,
};
use node_types::{Address, Bytes, H256, U256};
use std::sync::LazyLock;

/// More than any code of the model uses after the intrinsic gas.
const AMPLE_GAS: u64 = 100_000;

/// A blob of zeros with its proofs: every point is the point at infinity.
static SIDECAR: LazyLock<BlobSidecar> = LazyLock::new(|| {
    let mut point = [0; 48];
    point[0] = 0xc0;
    let point = Bytes::from(&point[..]);
    BlobSidecar::V1 {
        blobs: vec![vec![0; GAS_PER_BLOB as usize].into()],
        commitments: vec![point.clone()],
        cell_proofs: vec![point; 128],
    }
});

/// The sidecar of `count` blobs of zeros.
pub fn sidecar(count: usize) -> BlobSidecar {
    let repeat = |items: &[Bytes]| items.iter().cycle().take(items.len() * count).cloned().collect();
    let one = &*SIDECAR;
    let (blobs, commitments, cell_proofs) = (repeat(one.blobs()), repeat(one.commitments()), repeat(one.proofs()));
    BlobSidecar::V1 { blobs, commitments, cell_proofs }
}

/// The versioned hash of a blob of zeros.
pub fn blob_hash() -> H256 {
    versioned_hash(&SIDECAR.commitments()[0])
}

/// A transaction to send.
pub(super) struct Draft {
    /// The transaction.
    pub(super) sent: Sent,
    /// Its sidecar.
    pub(super) sidecar: Option<BlobSidecar>,
}

impl Draft {
    /// The bytes to send.
    pub(super) fn encode(&self) -> Vec<u8> {
        PooledTransaction { transaction: self.sent.transaction.clone(), sidecar: self.sidecar.clone() }.encode()
    }
}

/// The fields common to all types of transactions.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// Nonce.
    pub(super) nonce: u64,
    /// Tip cap.
    pub(super) tip: U256,
    /// Fee cap, or gas price.
    pub(super) fee: U256,
    /// Gas limit.
    pub(super) gas: u64,
    /// Receiver.
    pub(super) to: Option<Address>,
    /// Wei.
    pub(super) value: U256,
    /// Input.
    pub(super) input: Bytes,
    chain_id: u64,
    access_list: Vec<AccessListItem>,
    blob_fee: U256,
    blobs: Vec<H256>,
    authorizations: Vec<Authorization>,
}

impl Fields {
    fn body(self, kind: u64) -> TransactionBody {
        let Self { nonce, tip, fee, gas: gas_limit, to, value, input, chain_id, access_list, .. } = self;
        let (max_priority_fee_per_gas, max_fee_per_gas, receiver) = (tip, fee, to.unwrap_or_default());
        match kind {
            0 => TransactionBody::Legacy(LegacyTransaction {
                chain_id: Some(chain_id),
                nonce,
                gas_price: fee,
                gas_limit,
                to,
                value,
                input,
            }),
            1 => TransactionBody::AccessList(AccessListTransaction {
                chain_id,
                nonce,
                gas_price: fee,
                gas_limit,
                to,
                value,
                input,
                access_list,
            }),
            2 => TransactionBody::DynamicFee(DynamicFeeTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to,
                value,
                input,
                access_list,
            }),
            3 => TransactionBody::Blob(BlobTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to: receiver,
                value,
                input,
                access_list,
                max_fee_per_blob_gas: self.blob_fee,
                blob_versioned_hashes: self.blobs,
            }),
            _ => TransactionBody::SetCode(SetCodeTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to: receiver,
                value,
                input,
                access_list,
                authorization_list: self.authorizations,
            }),
        }
    }
}

/// Generates transactions.
pub(super) struct Generator {
    /// The signers.
    pub(super) accounts: &'static [DevAccount],
    /// Other receivers, with code and without.
    pub(super) others: Vec<Address>,
    /// The address of the contract.
    pub(super) contract: Address,
}

impl Generator {
    /// Any address of interest.
    pub(super) fn address(&self, random: &mut Random) -> Address {
        match random.below(3) {
            0 => random.pick(self.accounts).address(),
            1 => self.contract,
            _ => *random.pick(&self.others),
        }
    }

    /// The random fields of a transaction of `sender`.
    pub(super) fn fields(&self, random: &mut Random, model: &Model, sender: Address) -> (Fields, bool) {
        let account = model.state.account(sender);
        let pending = model.pool.pending(sender, &account).len() as u64;
        let next = account.nonce + pending;
        let nonce = match random.below(100) {
            0..=69 => next,
            70..=79 => next + 1 + random.below(3),
            80..=95 => next.saturating_sub(1 + random.below(pending.max(1))),
            _ => account.nonce.saturating_sub(1),
        };
        let base_fee = model.next_header().base_fee_per_gas.expect("since London");
        let tip = U256::from(1 + random.below(2_000_000_000));
        let mut fee = U256::from(base_fee) * [90u64, 100, 110, 150, 200][random.below(5) as usize] / 100 + tip;
        let mut tip = tip;
        if let Some(old) = model.pool.at(sender, nonce)
            && random.chance(75)
        {
            // Enough to replace it, most often exactly.
            let percent = if old.sent.is_blob() { 200 } else { [110, 110, 109, 200][random.below(4) as usize] };
            fee = old.sent.body().max_fee_per_gas() * percent / 100 + 1;
            tip = old.sent.body().max_priority_fee_per_gas() * percent / 100 + 1;
        }
        let slot = H256::from_low_u64_be(random.below(8));
        let word = U256::from(random.below(4));
        let (to, input) = match random.below(100) {
            0..=34 => (Some(self.address(random)), Bytes::new()),
            35..=84 => {
                let to = if random.chance(60) { self.contract } else { self.address(random) };
                (Some(to), code::store(slot, word, random.chance(10)))
            }
            85..=94 => (None, code::creation()),
            95..=97 => (None, Bytes::from(&code::REVERT[..])),
            _ => (Some(self.address(random)), vec![1; random.below(200) as usize].into()),
        };
        let value = if random.chance(50) { U256::zero() } else { U256::from(random.next()) };
        let access_list = if random.chance(30) {
            vec![AccessListItem { address: self.contract, storage_keys: vec![slot] }]
        } else {
            Vec::new()
        };
        let scarce = random.chance(5);
        let fields = Fields {
            nonce,
            tip,
            fee,
            gas: 0,
            to,
            value,
            input,
            chain_id: CHAIN_ID,
            access_list,
            blob_fee: U256::from([1u64, 1_000, 2, 1_000_000_000][random.below(4) as usize]),
            blobs: vec![blob_hash(); 1],
            authorizations: Vec::new(),
        };
        (fields, scarce)
    }

    /// A signed transaction.
    pub(super) fn transaction(&self, random: &mut Random, model: &Model) -> Draft {
        let sender = random.pick(self.accounts);
        let (mut fields, scarce) = self.fields(random, model, sender.address());
        let kind = match random.below(100) {
            0..=24 => 0,
            25..=39 => 1,
            40..=79 => 2,
            80..=82 => 3,
            _ if random.chance(50) => 4,
            _ => 2,
        };
        if kind < 2 {
            fields.tip = fields.fee;
        }
        let mut signers = Vec::new();
        if kind == 4 {
            for _ in 0..1 + random.below(2) {
                let authority = random.pick(self.accounts);
                fields.authorizations.push(self.authorization(random, model, authority, sender.address()));
                signers.push(authority.address());
            }
        }
        let fault = if random.chance(12) { random.below(14) + 1 } else { 0 };
        match fault {
            1 => fields.chain_id += 1,
            2 => fields.tip = fields.fee + 1,
            3 => fields.tip = U256::zero(),
            4 => fields.value = U256::exp10(24),
            5 => (fields.to, fields.input) = (None, vec![1; 49_153].into()),
            6 => fields.authorizations.clear(),
            7 => fields.blobs.clear(),
            8 => fields.blobs = vec![H256::zero()],
            9 => fields.blob_fee = U256::zero(),
            10 => fields.input = vec![1; 100 + random.below(100) as usize].into(),
            _ => {}
        }
        if fields.authorizations.is_empty() {
            signers.clear();
        }
        let unsigned = |body| Sent {
            hash: H256::zero(),
            sender: sender.address(),
            transaction: Transaction { body, signature: Default::default() },
            signers: Vec::new(),
            unsigned: false,
        };
        let draft = unsigned(fields.clone().body(kind));
        fields.gas = match fault {
            // Less than the intrinsic gas, or less than the minimum for the call data.
            10 => draft.intrinsic_gas(),
            11 => draft.intrinsic_gas() - 1,
            12 => 30_000_001,
            13 => (1 << 24) + 1,
            _ if scarce => draft.intrinsic_gas().max(draft.floor_gas()),
            _ => draft.intrinsic_gas().max(draft.floor_gas()) + AMPLE_GAS,
        };
        let blobs = fields.blobs.len();
        let mut transaction = sender.sign(fields.body(kind));
        if fault == 14 {
            transaction = with_high_s(transaction);
        }
        let with_blobs = kind == 3 && blobs > 0 && !random.chance(5);
        let sidecar = with_blobs.then(|| sidecar(blobs));
        Draft {
            sent: Sent { hash: transaction.hash(), sender: sender.address(), transaction, signers, unsigned: false },
            sidecar,
        }
    }

    fn authorization(
        &self,
        random: &mut Random,
        model: &Model,
        authority: &DevAccount,
        sender: Address,
    ) -> Authorization {
        let state = model.state.account(authority.address());
        // The sender's nonce has already increased when its authorization is processed.
        let nonce = state.nonce + u64::from(authority.address() == sender);
        let chain_id = [0, CHAIN_ID, CHAIN_ID, CHAIN_ID + 1][random.below(4) as usize];
        let to = match random.below(4) {
            0 => Address::zero(),
            1 => *random.pick(&self.others),
            _ => self.contract,
        };
        authority.sign_authorization(chain_id, to, nonce + u64::from(random.chance(10)))
    }
}
