//! Any text as an account or a lender: what is taken is written again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_carbon::budget::{Account, Lender};

fuzz_target!(|text: &str| {
    if let Ok(account) = Account::decode(text) {
        assert_eq!(Account::decode(&account.encode()), Ok(account));
    }
    if let Ok(lender) = Lender::decode(text) {
        assert_eq!(Lender::decode(&lender.encode()), Ok(lender));
    }
});
