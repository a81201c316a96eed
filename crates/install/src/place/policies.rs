//! What the API server refuses, whatever rights say. The operator may patch nodes, and there nothing but its own keys: who
//! takes it over must not command the cluster. And whoever writes a TrafficWatch has the operator make a Deployment for
//! them, so they must be allowed to make one themselves.

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
        ValidatingAdmissionPolicySpec, Validation, Variable,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use weir_api::{
    hold::names::install::OPERATOR,
    place::names::{
        BANDWIDTH_PERCENT_ANNOTATION, GROUP, PLURAL, TAINT_EFFECT, UNFIT_KEY_SUFFIX, VERSION,
    },
};

use crate::{
    Object, Options,
    hold::part::{NAME_LABEL, PRODUCT},
};

const NODES: &str = "weir-nodes";
const WATCHES: &str = "weir-traffic-watches";

pub(super) fn objects(options: &Options) -> [Object; 4] {
    [
        policy(NODES, nodes(options)),
        binding(NODES),
        policy(WATCHES, watches()),
        binding(WATCHES),
    ]
}

/// On nodes the operator changes its own keys and nothing else.
fn nodes(options: &Options) -> ValidatingAdmissionPolicySpec {
    let account = format!("system:serviceaccount:{}:{OPERATOR}", options.namespace);
    let labels = "labels that end in .traffic.example.com/unfit";
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        match_constraints: Some(matching("", "v1", &["nodes", "nodes/*"], &["*"])),
        match_conditions: Some(vec![MatchCondition {
            name: "by-weir".to_owned(),
            expression: format!("request.userInfo.username == '{account}'"),
        }]),
        variables: Some(vec![
            variable(
                "isUpdate",
                "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''",
            ),
            variable("labels", "object.?metadata.labels.orValue({})"),
            variable("oldLabels", "oldObject.?metadata.labels.orValue({})"),
            variable("annotations", "object.?metadata.annotations.orValue({})"),
            variable(
                "oldAnnotations",
                "oldObject.?metadata.annotations.orValue({})",
            ),
            variable("taints", "object.?spec.taints.orValue([])"),
            variable("oldTaints", "oldObject.?spec.taints.orValue([])"),
        ]),
        validations: Some(vec![
            validation(
                "variables.isUpdate",
                "Weir may change nodes, and nothing below them",
            ),
            validation(
                &only(
                    "labels",
                    "oldLabels",
                    &format!("key.endsWith('{UNFIT_KEY_SUFFIX}')"),
                ),
                &format!("Weir may change {labels}, and no others"),
            ),
            validation(
                &only(
                    "annotations",
                    "oldAnnotations",
                    &format!("key == '{BANDWIDTH_PERCENT_ANNOTATION}'"),
                ),
                &format!(
                    "Weir may change the annotation {BANDWIDTH_PERCENT_ANNOTATION}, and no other"
                ),
            ),
            validation(
                &format!(
                    "!variables.isUpdate || (variables.taints.filter(taint, !taint.key.endsWith('{UNFIT_KEY_SUFFIX}')) == variables.oldTaints.filter(taint, !taint.key.endsWith('{UNFIT_KEY_SUFFIX}')) && variables.taints.all(taint, !taint.key.endsWith('{UNFIT_KEY_SUFFIX}') || taint.effect == '{TAINT_EFFECT}'))"
                ),
                &format!(
                    "Weir may set taints that end in {UNFIT_KEY_SUFFIX} with the effect {TAINT_EFFECT}, and no others"
                ),
            ),
            validation(
                "!variables.isUpdate || (object.?spec.unschedulable == oldObject.?spec.unschedulable && object.?spec.podCIDR == oldObject.?spec.podCIDR && object.?spec.podCIDRs == oldObject.?spec.podCIDRs && object.?spec.providerID == oldObject.?spec.providerID && object.?spec.configSource == oldObject.?spec.configSource && object.?metadata.finalizers == oldObject.?metadata.finalizers && object.?metadata.ownerReferences == oldObject.?metadata.ownerReferences)",
                "Weir may change nothing else on nodes",
            ),
        ]),
        ..ValidatingAdmissionPolicySpec::default()
    }
}

/// Every key that is new, changed or gone satisfies this.
fn only(new: &str, old: &str, ours: &str) -> String {
    let side = |one: &str, other: &str| {
        format!(
            "variables.{one}.all(key, {ours} || (key in variables.{other} && variables.{one}[key] == variables.{other}[key]))"
        )
    };
    format!(
        "!variables.isUpdate || ({} && {})",
        side(new, old),
        side(old, new)
    )
}

/// Who writes a TrafficWatch may make Deployments there, and change nodes if theirs are to be tainted. What does not
/// change the spec, such as a finalizer that goes, is nobody's command.
fn watches() -> ValidatingAdmissionPolicySpec {
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        match_constraints: Some(matching(GROUP, VERSION, &[PLURAL], &["CREATE", "UPDATE"])),
        match_conditions: Some(vec![MatchCondition {
            name: "spec-changes".to_owned(),
            expression: "request.operation == 'CREATE' || object.?spec != oldObject.?spec"
                .to_owned(),
        }]),
        validations: Some(vec![
            validation(
                "authorizer.group('apps').resource('deployments').namespace(request.namespace).check('create').allowed()",
                "who writes a TrafficWatch must be allowed to create Deployments in its namespace",
            ),
            validation(
                "object.?spec.action.orValue('label') != 'taint' || authorizer.group('').resource('nodes').check('patch').allowed()",
                "who has nodes tainted must be allowed to patch nodes; use the action label",
            ),
        ]),
        ..ValidatingAdmissionPolicySpec::default()
    }
}

fn matching(group: &str, version: &str, resources: &[&str], operations: &[&str]) -> MatchResources {
    let owned = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    MatchResources {
        match_policy: Some("Equivalent".to_owned()),
        // Empty ones say what is meant anyway; without them the API server fills them in, and applying again differs.
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector::default()),
        resource_rules: Some(vec![NamedRuleWithOperations {
            api_groups: Some(vec![group.to_owned()]),
            api_versions: Some(vec![version.to_owned()]),
            operations: owned(operations),
            resources: owned(resources),
            scope: Some("*".to_owned()),
            ..NamedRuleWithOperations::default()
        }]),
        ..MatchResources::default()
    }
}

fn variable(name: &str, expression: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        expression: expression.to_owned(),
    }
}

fn validation(expression: &str, message: &str) -> Validation {
    Validation {
        expression: expression.to_owned(),
        message: Some(message.to_owned()),
        reason: Some("Forbidden".to_owned()),
        ..Validation::default()
    }
}

fn policy(name: &str, spec: ValidatingAdmissionPolicySpec) -> Object {
    Object::from(ValidatingAdmissionPolicy {
        metadata: metadata(name),
        spec: Some(spec),
        ..ValidatingAdmissionPolicy::default()
    })
}

fn binding(name: &str) -> Object {
    Object::from(ValidatingAdmissionPolicyBinding {
        metadata: metadata(name),
        spec: Some(ValidatingAdmissionPolicyBindingSpec {
            policy_name: Some(name.to_owned()),
            validation_actions: Some(vec!["Deny".to_owned()]),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        }),
    })
}

fn metadata(name: &str) -> ObjectMeta {
    let label = (NAME_LABEL.to_owned(), PRODUCT.to_owned());
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([label].into()),
        ..ObjectMeta::default()
    }
}
