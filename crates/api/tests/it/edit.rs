//! Small changes to JSON objects, so that a test shows only what is special about its object.

use serde_json::{Map, Value};

/// Put `value` at a JSON pointer, making objects and lists on the way; `null` removes what is there.
pub(crate) fn set(object: &mut Value, pointer: &str, value: Value) {
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer begins with '/'");
    let mut place = object;
    for (part, next) in parent.split('/').skip(1).zip(pointer.split('/').skip(2)) {
        place = child(place, part);
        if place.is_null() {
            *place = if next.parse::<usize>().is_ok() {
                Value::Array(Vec::new())
            } else {
                Value::Object(Map::new())
            };
        }
    }
    if value.is_null() {
        if let Value::Object(fields) = place {
            fields.remove(last);
        }
    } else {
        *child(place, last) = value;
    }
}

fn child<'a>(place: &'a mut Value, part: &str) -> &'a mut Value {
    match place {
        Value::Array(items) => {
            let index: usize = part.parse().expect("an index");
            while items.len() <= index {
                items.push(Value::Null);
            }
            &mut items[index]
        }
        Value::Object(fields) => fields.entry(part).or_insert(Value::Null),
        other => panic!("{other} has no {part}"),
    }
}
