//! The code of docs/embedding.md.

use crate::generator::{Generator, Shape};
use node_chain::{BlockImporter, ImportError, dev_genesis};
use node_core::backend::{BackendError, MemoryBackend, StateBackend};
use node_core::context::Context;
use node_core::node::Node;
use node_dev::DevNode;
use node_evm::EvmExecutor;
use node_http::{HttpConfig, MetricsServer, NodeService, ProblemResponse, Shutdown, serve};
use node_store::{Options, Store};
use node_types::consensus::Block;
use node_types::{Address, BlockId};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

fn open_chain(folder: &Path) -> Result<Store, BackendError> {
    match Store::open_existing(folder, Options::default()) {
        // Another process writes to the folder: the chain as it is now.
        Err(BackendError::Locked { .. }) => Store::open_snapshot(folder, Options::default()),
        opened => opened,
    }
}

fn import(node: &Node, evm: Arc<EvmExecutor>, blocks: Vec<Block>) -> Result<(), ImportError> {
    let importer = BlockImporter::new(node.backend().clone(), evm.clone(), evm, node.spec().clone());
    for block in blocks {
        importer.import_block(&Context::unbounded(), block)?;
    }
    Ok(())
}

async fn balance(service: NodeService, of: Address) -> Result<String, ProblemResponse> {
    let balance = service.run(move |node, context| node.get_balance(context, of, BlockId::latest())).await?;
    Ok(balance.to_string())
}

#[allow(dead_code, reason = "it runs until a signal arrives")]
fn serve_with_metrics(node: Arc<Node>) -> Result<(), Box<dyn Error>> {
    let options = HttpConfig::default();
    let _metrics = MetricsServer::start("127.0.0.1:9545".parse()?, &options)?;
    serve(node, options, Shutdown::on_signals()?, |address| {
        println!("listening on http://{address}");
        Ok(())
    })?;
    Ok(())
}

fn a_day_later(chain: &DevNode, check: impl Fn(&Node)) -> Result<(), Box<dyn Error>> {
    let context = Context::unbounded();
    let producer = chain.control(&context)?;
    let snapshot = producer.snapshot()?;
    producer.increase_time(24 * 60 * 60)?;
    chain.mine(&context, 1, None, Vec::new())?;
    check(chain);
    producer.revert(snapshot)?;
    Ok(())
}

#[test]
fn the_code_of_the_page_is_compiled() {
    let page = include_str!("../../../docs/embedding.md");
    let snippets: Vec<_> = page.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(snippets.len(), 5);
    for snippet in snippets {
        assert!(include_str!("embedding.rs").contains(snippet), "{snippet}");
    }
}

#[test]
fn a_folder_in_use_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let chain = DevNode::builder().data_dir(&path, Options::default()).spawn().unwrap();
    let head = chain.mine(&Context::unbounded(), 3, None, Vec::new()).unwrap();
    let snapshot = open_chain(&path).unwrap();
    assert_eq!(snapshot.view().unwrap().head(), head);
    chain.mine(&Context::unbounded(), 1, None, Vec::new()).unwrap();
    assert_eq!(snapshot.view().unwrap().head(), head);
    drop((snapshot, chain));
    assert_eq!(open_chain(&path).unwrap().view().unwrap().head().number, 4);
    assert!(open_chain(&folder.path().join("missing")).is_err());
}

#[test]
fn blocks_are_imported_into_a_live_node() {
    let genesis = dev_genesis();
    let backend: Arc<dyn StateBackend> = Arc::new(MemoryBackend::new(genesis.block()).unwrap());
    let spec = Arc::new(genesis.spec);
    let evm = Arc::new(EvmExecutor::new(spec.clone()));
    let node = Node::builder(backend, evm.clone(), spec).open().unwrap();
    let mut generator = Generator::new(Shape::default());
    let blocks = (0..3).map(|_| {
        let block = generator.next_block().unwrap();
        let transactions = block.body.transactions.iter().map(|recovered| recovered.transaction.clone()).collect();
        let (header, withdrawals) = (block.header.header.clone(), block.body.withdrawals.clone());
        Block { header, transactions, ommers: Vec::new(), withdrawals }
    });
    import(&node, evm, blocks.collect()).unwrap();
    assert_eq!(node.block_number(&Context::unbounded()).unwrap(), 3);
}

#[test]
fn time_and_state_of_a_development_chain_go_back() {
    let chain = DevNode::spawn().unwrap();
    let context = Context::unbounded();
    let before = chain.head(&context).unwrap().header.timestamp;
    let check = |node: &Node| assert!(node.head(&context).unwrap().header.timestamp >= before + 86_400);
    a_day_later(&chain, check).unwrap();
    assert_eq!(chain.block_number(&context).unwrap(), 0);
}

#[tokio::test]
async fn handlers_do_not_block() {
    let chain = DevNode::spawn().unwrap();
    let service = NodeService::new(chain.node().clone(), HttpConfig::default()).unwrap();
    let found = balance(service, chain.accounts()[0].address()).await.unwrap();
    assert_eq!(found, format!("10000{}", "0".repeat(18)));
}
