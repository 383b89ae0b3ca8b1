//! The part `sensors`: temperatures, fans, voltages, currents and power, from the drivers of the kernel.

use serde::Serialize;

use super::root::SystemRoot;

/// The most values that are listed.
const MAX_SENSORS: usize = 512;

/// A sort of values: the start of the file's name, the word, the unit, and the number of the file's units in one unit.
struct Quantity {
    start: &'static str,
    word: &'static str,
    unit: &'static str,
    scale: f64,
}

/// The sorts of values; see Documentation/hwmon/sysfs-interface.rst of the kernel.
const QUANTITIES: [Quantity; 5] = [
    Quantity { start: "temp", word: "temperature", unit: "°C", scale: 1e3 },
    Quantity { start: "fan", word: "fan", unit: "rpm", scale: 1.0 },
    Quantity { start: "in", word: "voltage", unit: "V", scale: 1e3 },
    Quantity { start: "curr", word: "current", unit: "A", scale: 1e3 },
    Quantity { start: "power", word: "power", unit: "W", scale: 1e6 },
];

/// The facts of the part. A virtual machine has none.
#[derive(Serialize)]
pub(super) struct SensorFacts {
    sensors: Vec<Sensor>,
}

/// One value.
#[derive(Serialize)]
struct Sensor {
    chip: String,
    name: String,
    quantity: &'static str,
    value: f64,
    unit: &'static str,
    /// The highest value in normal use.
    high: Option<f64>,
    /// The value from which damage is possible.
    critical: Option<f64>,
}

pub(super) fn collect(root: &SystemRoot) -> SensorFacts {
    let mut sensors = Vec::new();
    for chip in root.names("sys/class/hwmon") {
        let directory = format!("sys/class/hwmon/{chip}");
        let name = root.value(&format!("{directory}/name")).unwrap_or(chip);
        for file in root.names(&directory) {
            sensors.extend(sensor(root, &directory, &name, &file));
        }
    }
    for zone in root.names("sys/class/thermal") {
        let file = |name: &str| format!("sys/class/thermal/{zone}/{name}");
        let Some(value) = root.number::<f64>(&file("temp")) else { continue };
        let name = root.value(&file("type")).unwrap_or_else(|| zone.clone());
        sensors.push(Sensor {
            chip: "thermal".to_owned(),
            name,
            quantity: "temperature",
            value: value / 1e3,
            unit: "°C",
            high: None,
            critical: None,
        });
    }
    sensors.truncate(MAX_SENSORS);
    SensorFacts { sensors }
}

/// The value behind a file such as `temp1_input`. `None` for other files, and for a sensor that gives no value now.
fn sensor(root: &SystemRoot, directory: &str, chip: &str, file: &str) -> Option<Sensor> {
    let stem = file.strip_suffix("_input").or_else(|| file.strip_suffix("_average"))?;
    let is_of = |quantity: &&Quantity| {
        let number = stem.strip_prefix(quantity.start).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let quantity = QUANTITIES.iter().find(is_of)?;
    let number = |name: &str| Some(root.number::<f64>(&format!("{directory}/{name}"))? / quantity.scale);
    Some(Sensor {
        chip: chip.to_owned(),
        name: root.value(&format!("{directory}/{stem}_label")).unwrap_or_else(|| stem.to_owned()),
        quantity: quantity.word,
        value: number(file)?,
        unit: quantity.unit,
        high: number(&format!("{stem}_max")),
        critical: number(&format!("{stem}_crit")),
    })
}
