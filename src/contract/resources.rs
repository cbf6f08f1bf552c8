//! The bounds of a new environment: what is asked, what the service gets, what an observation shows (core contracts, 7.3;
//! provider runtime, 3.7).
//!
//! Nothing is rounded, and an empty request is no request.

use serde_json::Value;

use super::check::Refused;
use super::types::{
    Accelerator, Amount, Count, NonEmptyText, PositiveCount, RequestedAccelerator,
    RequestedResources, ResourceRequest, Resources,
};

/// Megabytes of a gigabyte.
const GIGABYTE: u64 = 1024;

impl ResourceRequest {
    /// The same bounds as the service counts them; none for an empty request.
    ///
    /// # Errors
    ///
    /// None in practice: every bound of a request is one that the service takes.
    pub fn to_wire(&self) -> Result<Option<Resources>, Refused> {
        let cpu = self.cpu.map(|cpu| amount(cpu.get())).transpose()?;
        let memory = self.memory_mb.map(|memory| Count::try_from(memory.get()));
        let disk = self.disk_mb.map(|disk| amount(disk.get() / GIGABYTE));
        let accelerator = self.gpu.as_ref().map(|gpu| {
            Ok::<_, Refused>(Accelerator {
                kind: NonEmptyText::new(gpu.as_str())?,
                count: Some(PositiveCount::try_from(1)?),
                memory_mb: None,
            })
        });
        let resources = Resources {
            cpu_cores: cpu,
            memory_mb: memory.transpose()?,
            disk_gb: disk.transpose()?,
            accelerator: accelerator.transpose()?,
        };
        Ok((resources != Resources::default()).then_some(resources))
    }

    /// What an observation shows as requested; none for an empty request.
    ///
    /// # Errors
    ///
    /// None in practice: the count of a GPU is one.
    pub fn requested(&self) -> Result<Option<RequestedResources>, Refused> {
        let accelerator = self.gpu.as_ref().map(|gpu| {
            Ok::<_, Refused>(RequestedAccelerator {
                kind: gpu.clone(),
                count: PositiveCount::try_from(1)?,
            })
        });
        let requested = RequestedResources {
            cpu: self.cpu,
            memory_mb: self.memory_mb,
            disk_mb: self.disk_mb,
            accelerator: accelerator.transpose()?,
        };
        Ok((requested != RequestedResources::default()).then_some(requested))
    }
}

/// A whole number up to 2^53 - 1, which a double holds exactly.
fn amount(count: u64) -> Result<Amount, Refused> {
    Amount::try_from(count as f64)
}

/// The rule of a disk: whole gigabytes.
pub(super) fn whole_gigabytes(megabytes: &Value) -> Result<(), Refused> {
    match megabytes.as_f64() {
        Some(megabytes) if megabytes % GIGABYTE as f64 != 0.0 => {
            Err(Refused::new("", "must be a multiple of 1024"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::DiskMegabytes;
    use super::*;
    use crate::contract::from_value;
    use serde_json::json;

    fn read(request: Value) -> Result<ResourceRequest, String> {
        from_value(request).map_err(|refused| refused.path().to_owned())
    }

    #[test]
    fn provider_3_7_nothing_is_rounded() {
        for megabytes in [1_u64, 512, 1025, 1500, 9_007_199_254_740_991] {
            assert_eq!(read(json!({"diskMb": megabytes})), Err("/diskMb".into()));
            assert!(DiskMegabytes::try_from(megabytes).is_err(), "{megabytes}");
        }
        let request = read(json!({"diskMb": 9_007_199_254_739_968_u64})).unwrap();
        let wire = request.to_wire().unwrap().unwrap();
        assert_eq!(wire.disk_gb.unwrap().get(), 8_796_093_022_207.0);
        for number in [json!(0), json!(-1), json!(0.5), json!("2"), json!(null)] {
            for field in ["cpu", "memoryMb", "diskMb"] {
                assert_eq!(read(json!({field: number})), Err(format!("/{field}")));
            }
        }
    }

    #[test]
    fn provider_3_7_an_empty_request_is_no_request() {
        for empty in [json!({}), json!({"providerOptions": {}})] {
            let request = read(empty).unwrap();
            assert_eq!(request.to_wire(), Ok(None));
            assert_eq!(request.requested(), Ok(None));
        }
        assert_eq!(
            read(json!({"providerOptions": {"a": 1}})),
            Err("/providerOptions".into())
        );
        assert_eq!(read(json!({"cores": 1})), Err(String::new()));
    }
}
