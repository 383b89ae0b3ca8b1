//! `plugins/mail` over mailboxes of every kind, compared with Python's email package.

use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::Value;

use super::{cases, judge_all};
use crate::providers::support::{lacks_build_tools, shared};
use crate::support::patient;

#[test]
fn messages_agree_with_pythons_email_package() {
    if lacks_build_tools() {
        return;
    }
    let mut site = Site::new();
    site.mount("mail");
    std::fs::create_dir_all(site.path("mail")).unwrap();
    let Some(cases) = cases("mail", &site.path("mail")) else { return };
    site.config(&patient("[mounts.mail]\nfs = { \"/mail\" = \"mail\" }\n"));
    site.share(shared("mail"));
    let mut client = site.stdio(Era::Stateless);
    judge_all("mail", &cases, |case| {
        let mut rows = Vec::new();
        let mut next = Some(case.reference.clone());
        while let Some(reference) = next {
            let answer: Value = serde_json::from_str(&read(&mut client, &reference)?).map_err(|why| why.to_string())?;
            rows.extend(answer["messages"].as_array().into_iter().flatten().cloned());
            next = answer["next"].as_str().map(str::to_owned);
        }
        let expected = case.expected.as_array().expect("messages");
        if rows.len() != expected.len() {
            return Err(format!("{} messages, expected {}", rows.len(), expected.len()));
        }
        // Files of one moment have no order.
        let is_ordered = !case.reference.contains("eml") && !case.reference.contains("maildir");
        let mut left: Vec<Value> = rows.into_iter().rev().collect();
        // What is known of fewer parts is compared later, because it could be any of several messages.
        let parts = |message: &Value, key: &str| message[key].as_array().map_or(0, Vec::len);
        let known = |message: &&Value| {
            let has_subject = parts(message, "subject") > 0;
            (has_subject, parts(message, "body"), parts(message, "from"), message["date"].is_string())
        };
        let mut expected: Vec<&Value> = expected.iter().collect();
        if !is_ordered {
            expected.sort_by_key(|message| std::cmp::Reverse(known(message)));
        }
        for message in expected {
            let mut fewest = None;
            let near = left.iter().take(if is_ordered { 1 } else { usize::MAX });
            for (at, row) in near.enumerate() {
                let differences = difference(&mut client, message, row)?;
                let is_done = differences.is_empty();
                if fewest.as_ref().is_none_or(|(_, known): &(usize, Vec<String>)| differences.len() < known.len()) {
                    fewest = Some((at, differences));
                }
                if is_done {
                    break;
                }
            }
            let (at, differences) = fewest.expect("a row");
            let row = left.remove(at);
            if !differences.is_empty() {
                return Err(format!("{} in {row}", differences.join(" and ")));
            }
        }
        Ok(())
    });
    client.close();
}

fn read(client: &mut Client<Stdio>, reference: &str) -> Result<String, String> {
    let read = client.read(&format!("belljar://mail/{reference}")).map_err(|error| format!("{reference}: {error}"))?;
    let contents = &read["contents"][0];
    let body = contents["text"].as_str().or(contents["blob"].as_str());
    Ok(body.unwrap_or_default().to_owned())
}

/// What of a message is not as Python has it.
fn difference(client: &mut Client<Stdio>, expected: &Value, row: &Value) -> Result<Vec<String>, String> {
    let joined_list = |value: &Value| -> String {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().concat()
    };
    let mut wrong = Vec::new();
    let subject = joined_list(&expected["subject"]);
    let shown = joined(row["subject"].as_str().unwrap_or_default());
    if !subject.is_empty() && subject != shown {
        // A subject that differs is another message; its text is not worth reading.
        return Ok(vec![format!("the subject {subject:?}"); 9]);
    }
    let sender = joined_list(&expected["from"]);
    if !sender.is_empty() && sender != joined(row["from"].as_str().unwrap_or_default()) {
        wrong.push(format!("the sender {sender:?}"));
    }
    let reference = row["reference"].as_str().unwrap_or_default();
    let text = read(client, reference)?;
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    if let Some(date) = expected["date"].as_str()
        && !head.contains(&format!("Date: {date}"))
    {
        wrong.push(format!("the date {date}"));
    }
    let words = expected["body"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(word) = words.into_iter().find(|word| !body.contains(*word)) {
        wrong.push(format!("the word {word:?}, in {body:?}"));
    }
    for attachment in expected["attachments"].as_array().into_iter().flatten() {
        let name = attachment["words"].as_str().unwrap_or_default();
        let line = head.lines().find(|line| line.starts_with("Attachment: ") && joined(line).contains(name));
        let data = match line.and_then(|line| line.rsplit(' ').next()) {
            Some(part) => read(client, part)?,
            None => format!("no attachment in {head:?}"),
        };
        if attachment["data"] != data.as_str() {
            wrong.push(format!("the attachment {attachment}: {data}"));
        }
    }
    Ok(wrong)
}

fn joined(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect()
}
