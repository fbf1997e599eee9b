//! Blobs and their KZG proofs, on c-kzg.

use c_kzg::{
    BYTES_PER_BLOB, BYTES_PER_COMMITMENT, BYTES_PER_PROOF, Blob, Bytes48, CELLS_PER_EXT_BLOB, KzgSettings,
    ethereum_kzg_settings,
};
use node_core::crypto::{BlobError, BlobVerifier};
use node_types::consensus::BlobSidecar;
use node_types::{Bytes, H256};
use revm::precompile::kzg_point_evaluation::kzg_to_versioned_hash;

/// Verifies blobs with the trusted setup of Ethereum's mainnet, which is loaded on first use.
#[derive(Clone, Copy, Debug, Default)]
pub struct KzgVerifier;

impl BlobVerifier for KzgVerifier {
    fn verify(&self, versioned_hashes: &[H256], sidecar: &BlobSidecar) -> Result<(), BlobError> {
        let (blobs, commitments, proofs, proofs_per_blob) = match sidecar {
            BlobSidecar::V0 { blobs, commitments, proofs } => (blobs, commitments, proofs, 1),
            BlobSidecar::V1 { blobs, commitments, cell_proofs } => {
                (blobs, commitments, cell_proofs, CELLS_PER_EXT_BLOB)
            }
        };
        // Cheap checks come before cryptography.
        check_count("blobs", blobs, versioned_hashes.len())?;
        check_count("commitments", commitments, versioned_hashes.len())?;
        check_count("proofs", proofs, versioned_hashes.len().saturating_mul(proofs_per_blob))?;
        check_lengths("blob", blobs, BYTES_PER_BLOB)?;
        check_lengths("commitment", commitments, BYTES_PER_COMMITMENT)?;
        check_lengths("proof", proofs, BYTES_PER_PROOF)?;
        check_versioned_hashes(versioned_hashes, commitments)?;

        let verified = match sidecar {
            BlobSidecar::V0 { .. } => verify_blob_proofs(blobs, commitments, proofs),
            BlobSidecar::V1 { .. } => verify_cell_proofs(blobs, commitments, proofs),
        };
        // c-kzg returns an error for invalid field elements and points, for which there is no valid proof.
        match verified {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(BlobError::Proof),
        }
    }

    fn with_cell_proofs(&self, sidecar: BlobSidecar) -> Result<BlobSidecar, BlobError> {
        let BlobSidecar::V0 { blobs, commitments, .. } = sidecar else { return Ok(sidecar) };
        check_lengths("blob", &blobs, BYTES_PER_BLOB)?;
        let mut cell_proofs = Vec::with_capacity(blobs.len() * CELLS_PER_EXT_BLOB);
        for blob in &blobs {
            let computed = load(blob).and_then(|blob| settings().compute_cells_and_kzg_proofs(&blob));
            let (_, proofs) = computed.map_err(|_| BlobError::Proof)?;
            cell_proofs.extend(proofs.iter().map(|proof| Bytes::from(&proof.to_bytes()[..])));
        }
        Ok(BlobSidecar::V1 { blobs, commitments, cell_proofs })
    }
}

/// Returns the trusted setup, without precomputation, which would take seconds and 100 MB for a rarely used operation.
fn settings() -> &'static KzgSettings {
    ethereum_kzg_settings(0)
}

/// Verifies one proof per blob (EIP-4844).
fn verify_blob_proofs(blobs: &[Bytes], commitments: &[Bytes], proofs: &[Bytes]) -> Result<bool, c_kzg::Error> {
    for ((blob, commitment), proof) in blobs.iter().zip(commitments).zip(proofs) {
        if !settings().verify_blob_kzg_proof(&*load(blob)?, &bytes48(commitment)?, &bytes48(proof)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Verifies one proof per cell of each blob (EIP-7594).
fn verify_cell_proofs(blobs: &[Bytes], commitments: &[Bytes], proofs: &[Bytes]) -> Result<bool, c_kzg::Error> {
    let mut cells = Vec::with_capacity(blobs.len() * CELLS_PER_EXT_BLOB);
    let mut cell_commitments = Vec::with_capacity(cells.capacity());
    let mut indices = Vec::with_capacity(cells.capacity());
    for (blob, commitment) in blobs.iter().zip(commitments) {
        cells.extend_from_slice(&settings().compute_cells(&*load(blob)?)?[..]);
        cell_commitments.extend([bytes48(commitment)?; CELLS_PER_EXT_BLOB]);
        indices.extend(0..CELLS_PER_EXT_BLOB as u64);
    }
    let proofs = proofs.iter().map(bytes48).collect::<Result<Vec<_>, _>>()?;
    settings().verify_cell_kzg_proof_batch(&cell_commitments, &indices, &cells, &proofs)
}

/// Copies a blob to the heap, because a few copies on a thread's stack would overflow it.
fn load(blob: &Bytes) -> Result<Box<Blob>, c_kzg::Error> {
    Blob::from_bytes(blob).map(Box::new)
}

fn bytes48(item: &Bytes) -> Result<Bytes48, c_kzg::Error> {
    Bytes48::from_bytes(item)
}

fn check_count(what: &'static str, items: &[Bytes], expected: usize) -> Result<(), BlobError> {
    if items.len() == expected { Ok(()) } else { Err(BlobError::Count { what, got: items.len(), expected }) }
}

fn check_lengths(what: &'static str, items: &[Bytes], expected: usize) -> Result<(), BlobError> {
    match items.iter().position(|item| item.len() != expected) {
        Some(index) => Err(BlobError::Length { what, index, got: items[index].len(), expected }),
        None => Ok(()),
    }
}

fn check_versioned_hashes(versioned_hashes: &[H256], commitments: &[Bytes]) -> Result<(), BlobError> {
    for (index, (expected, commitment)) in versioned_hashes.iter().zip(commitments).enumerate() {
        let got = H256(kzg_to_versioned_hash(commitment));
        if got != *expected {
            return Err(BlobError::VersionedHash { index, got, expected: *expected });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use c_kzg::Bytes32;

    fn blob(first: u8) -> Bytes {
        let mut blob = vec![0; BYTES_PER_BLOB];
        // A field element has 32 bytes in big-endian order and is below the modulus.
        blob[31] = first;
        blob[63] = 7;
        blob.into()
    }

    /// Returns a sidecar of version 0 and its versioned hashes.
    fn sidecar(blobs: Vec<Bytes>) -> (Vec<H256>, BlobSidecar) {
        let bytes = |word: Bytes48| Bytes::from(&word[..]);
        let (mut hashes, mut commitments, mut proofs) = (vec![], vec![], vec![]);
        for blob in &blobs {
            let blob = load(blob).unwrap();
            let commitment = settings().blob_to_kzg_commitment(&blob).unwrap().to_bytes();
            proofs.push(bytes(settings().compute_blob_kzg_proof(&blob, &commitment).unwrap().to_bytes()));
            hashes.push(H256(kzg_to_versioned_hash(&commitment[..])));
            commitments.push(bytes(commitment));
        }
        (hashes, BlobSidecar::V0 { blobs, commitments, proofs })
    }

    #[test]
    fn both_versions_verify() {
        let (hashes, v0) = sidecar(vec![blob(1), blob(2)]);
        assert_eq!(KzgVerifier.verify(&hashes, &v0), Ok(()));
        let v1 = KzgVerifier.with_cell_proofs(v0).unwrap();
        assert!(matches!(&v1, BlobSidecar::V1 { cell_proofs, .. } if cell_proofs.len() == 256));
        assert_eq!(KzgVerifier.verify(&hashes, &v1), Ok(()));
        assert_eq!(KzgVerifier.with_cell_proofs(v1.clone()), Ok(v1));
        assert_eq!(KzgVerifier.verify(&[], &sidecar(vec![]).1), Ok(()), "nothing to prove");
    }

    #[test]
    fn rejects_sidecars_that_do_not_match() {
        let (hashes, v0) = sidecar(vec![blob(1), blob(2)]);
        let v1 = KzgVerifier.with_cell_proofs(v0.clone()).unwrap();
        type Parts<'a> = (&'a mut Vec<Bytes>, &'a mut Vec<Bytes>, &'a mut Vec<Bytes>);
        type Case = (&'static str, fn(Parts<'_>), BlobError);
        let change = |mut sidecar: BlobSidecar, change: fn(Parts<'_>)| {
            match &mut sidecar {
                BlobSidecar::V0 { blobs, commitments, proofs } => change((blobs, commitments, proofs)),
                BlobSidecar::V1 { blobs, commitments, cell_proofs } => change((blobs, commitments, cell_proofs)),
            }
            sidecar
        };
        for (version, sidecar, proofs) in [(0, v0, 2), (1, v1, 256)] {
            let count = |what, got, expected| BlobError::Count { what, got, expected };
            let length = |what, index, got, expected| BlobError::Length { what, index, got, expected };
            let cases: [Case; 12] = [
                ("a blob less", |(blobs, _, _)| drop(blobs.pop()), count("blobs", 1, 2)),
                ("a commitment less", |(_, commitments, _)| drop(commitments.pop()), count("commitments", 1, 2)),
                ("a proof less", |(_, _, proofs)| drop(proofs.pop()), count("proofs", proofs - 1, proofs)),
                ("a proof more", |(_, _, proofs)| proofs.push(Bytes::new()), count("proofs", proofs + 1, proofs)),
                ("an empty blob", |(blobs, _, _)| blobs[1] = Bytes::new(), length("blob", 1, 0, BYTES_PER_BLOB)),
                ("a short commitment", |(_, list, _)| list[0] = list[0][1..].into(), length("commitment", 0, 47, 48)),
                ("a long proof", |(_, _, list)| list[1] = vec![0; 49].into(), length("proof", 1, 49, 48)),
                ("blobs swapped", |(blobs, _, _)| blobs.swap(0, 1), BlobError::Proof),
                ("proofs swapped", |(_, _, proofs)| proofs.swap(0, 1), BlobError::Proof),
                (
                    "a blob that does not consist of field elements",
                    |(list, _, _)| list[0] = vec![0xff; BYTES_PER_BLOB].into(),
                    BlobError::Proof,
                ),
                ("a proof that is not a point", |(_, _, list)| list[0] = vec![0xff; 48].into(), BlobError::Proof),
                ("another blob", |(list, _, _)| list[1] = blob(3), BlobError::Proof),
            ];
            for (name, alter, expected) in cases {
                let altered = change(sidecar.clone(), alter);
                assert_eq!(KzgVerifier.verify(&hashes, &altered), Err(expected), "{name}, version {version}");
            }
            let swapped = [hashes[1], hashes[0]];
            let expected = BlobError::VersionedHash { index: 0, got: hashes[0], expected: hashes[1] };
            assert_eq!(KzgVerifier.verify(&swapped, &sidecar), Err(expected), "version {version}");
        }
    }

    /// The precompile is revm's, on blst alone; c-kzg is the oracle.
    #[test]
    fn point_evaluation_agrees_with_c_kzg() {
        use revm::precompile::kzg_point_evaluation::{GAS_COST, RETURN_VALUE, run};
        /// The order of the scalar field.
        const MODULUS: [u8; 32] = *RETURN_VALUE.last_chunk().unwrap();

        let scalar = |last: u8| [[0; 31].as_slice(), &[last]].concat();
        let minus_one = |mut word: [u8; 32]| {
            word[31] -= 1;
            word.to_vec()
        };
        // A polynomial of no special kind, the constant 5, whose proof is the point at infinity, and 0, whose
        // commitment is as well.
        let constant = Bytes::from(scalar(5).repeat(BYTES_PER_BLOB / 32));
        let blobs = [blob(1), constant, vec![0; BYTES_PER_BLOB].into()];
        let mut accepted = 0;
        for (index, blob) in blobs.iter().enumerate() {
            let blob = load(blob).unwrap();
            let commitment = settings().blob_to_kzg_commitment(&blob).unwrap().to_bytes();
            for z in [scalar(0), scalar(1), scalar(200), minus_one(MODULUS)] {
                let (proof, y) = settings().compute_kzg_proof(&blob, &Bytes32::from_bytes(&z).unwrap()).unwrap();
                let proof = proof.to_bytes();
                let mut flipped = proof.to_vec();
                flipped[20] ^= 1;
                // On the curve, but outside the subgroup of prime order.
                let outside = [[0x80].as_slice(), &[0; 46], &[4]].concat();
                let infinity = [[0xc0].as_slice(), &[0; 47]].concat();
                const COMMITMENT: usize = 0;
                const Z: usize = 1;
                const Y: usize = 2;
                const PROOF: usize = 3;
                let valid = [commitment.to_vec(), z.clone(), y.to_vec(), proof.to_vec()];
                let with = |part: usize, value: &[u8]| {
                    let mut parts = valid.clone();
                    parts[part] = value.to_vec();
                    parts
                };
                let cases = [
                    valid.clone(),
                    with(Z, &scalar(9)),
                    with(Z, &MODULUS),
                    with(Y, &scalar(77)),
                    with(Y, &MODULUS),
                    with(Y, &[0xff; 32]),
                    with(COMMITMENT, &infinity),
                    with(COMMITMENT, &outside),
                    with(COMMITMENT, &[0; 48]),
                    with(PROOF, &infinity),
                    with(PROOF, &outside),
                    with(PROOF, &[0xff; 48]),
                    with(PROOF, &flipped),
                ];
                for (case, [commitment, z, y, proof]) in cases.iter().enumerate() {
                    let bytes48 = |bytes: &[u8]| Bytes48::from_bytes(bytes).unwrap();
                    let bytes32 = |bytes: &[u8]| Bytes32::from_bytes(bytes).unwrap();
                    let expected = settings()
                        .verify_kzg_proof(&bytes48(commitment), &bytes32(z), &bytes32(y), &bytes48(proof))
                        .unwrap_or(false);
                    let input = [&kzg_to_versioned_hash(commitment)[..], z, y, commitment, proof].concat();
                    let output = run(&input, GAS_COST);
                    assert_eq!(output.is_ok(), expected, "blob {index}, z {z:?}, case {case}");
                    accepted += usize::from(expected);
                    if let Ok(output) = output {
                        assert_eq!((output.gas_used, &output.bytes[..]), (GAS_COST, &RETURN_VALUE[..]));
                    }
                }
            }
        }
        assert!(accepted >= 12, "{accepted} proofs are valid");
    }

    #[test]
    fn cell_proofs_need_valid_blobs() {
        let sidecar = |blob: Vec<u8>| BlobSidecar::V0 { blobs: vec![blob.into()], commitments: vec![], proofs: vec![] };
        let short = BlobError::Length { what: "blob", index: 0, got: 5, expected: BYTES_PER_BLOB };
        assert_eq!(KzgVerifier.with_cell_proofs(sidecar(vec![0; 5])), Err(short));
        assert_eq!(KzgVerifier.with_cell_proofs(sidecar(vec![0xff; BYTES_PER_BLOB])), Err(BlobError::Proof));
    }
}
