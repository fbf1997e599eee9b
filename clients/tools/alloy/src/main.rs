//! Starts the program given as argument as alloy starts anvil.

use alloy_node_bindings::Anvil;

fn main() {
    let path = std::env::args().nth(1).expect("the path of a program");
    let anvil = Anvil::at(&path).spawn();
    assert_eq!(format!("{:?}", anvil.addresses()[0]), "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
    assert_eq!((anvil.addresses().len(), anvil.keys().len(), anvil.chain_id()), (10, 10, 31_337));
    drop(anvil);
    let words = "legal winner thank year wave sausage worth useful legal winner thank yellow";
    let anvil = Anvil::at(&path).mnemonic(words).chain_id(1_337).block_time(1).arg("--code-size-limit").arg("60000").spawn();
    assert_eq!((anvil.addresses().len(), anvil.chain_id()), (10, 1_337));
    assert_ne!(anvil.port(), 8_545);
    println!("ok instance");
}
