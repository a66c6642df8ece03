//! Calls of the kernel, by seccomp.
//!
//! Everything is allowed but what is listed: programs of a project are of all kinds. What is refused says
//! `EPERM`, as it would to a plain user. A program of another architecture is killed, since its calls have other
//! numbers; so is one that makes calls of x32, which say that they are of this one.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
#[cfg(target_arch = "x86_64")]
use seccompiler::sock_filter;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::Filter;

/// What only debuggers, drivers and administrators do, and what has let programs out of sandboxes before.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_ioperm, libc::SYS_iopl];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Namespaces of every kind.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Sockets that speak to the hardware or to the hypervisor.
const FAMILIES: [libc::c_int; 3] = [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG];

/// Of `linux/tty.h`.
const TIOCSTI: u64 = 0x5412;
/// The same.
const TIOCLINUX: u64 = 0x541c;

/// `fchmodat2` of Linux 6.6, on every architecture.
const SYS_FCHMODAT2: libc::c_long = 452;

/// `SOCK_RAW`, with the flags that a caller may add taken off.
const KIND: u64 = 0xf;

pub(super) fn apply(kind: Filter) -> Result<(), io::Error> {
    #[cfg(target_arch = "x86_64")]
    seccompiler::apply_filter(&no_x32()).map_err(io::Error::other)?;
    let put_on = |refused: &[Refused], errno| seccompiler::apply_filter(&program(refused, errno)?);
    put_on(&eperm(kind), libc::EPERM).map_err(io::Error::other)?;
    put_on(&enosys(kind), libc::ENOSYS).map_err(io::Error::other)
}

/// A call of the kernel, and the conditions under which it is refused: any of them, or none.
type Refused = (libc::c_long, Vec<Vec<Condition>>);

/// An argument, by its place, the bits of it that count, and how it compares.
struct Condition(u8, SeccompCmpOp, u64);

fn eperm(kind: Filter) -> Vec<Refused> {
    let mut all: Vec<Refused> = REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    let equal = |at, value: u64| vec![Condition(at, SeccompCmpOp::Eq, value)];
    // Typing for whoever sits at the terminal.
    all.push((libc::SYS_ioctl, vec![equal(1, TIOCSTI), equal(1, TIOCLINUX)]));
    all.push((
        libc::SYS_personality,
        vec![vec![Condition(0, SeccompCmpOp::Ne, 0), Condition(0, SeccompCmpOp::Ne, 0xffff_ffff)]],
    ));
    let mut sockets: Vec<_> = FAMILIES.map(|family| equal(0, family.unsigned_abs().into())).into();
    sockets.push(vec![Condition(1, SeccompCmpOp::MaskedEq(KIND), libc::SOCK_RAW.unsigned_abs().into())]);
    all.push((libc::SYS_socket, sockets));
    all.extend(set_user_id());
    if kind == Filter::Strict {
        let any = || {
            NAMESPACES.map(|flag| {
                let flag = u64::from(flag.unsigned_abs());
                vec![Condition(0, SeccompCmpOp::MaskedEq(flag), flag)]
            })
        };
        all.push((libc::SYS_unshare, any().into()));
        all.push((libc::SYS_clone, any().into()));
    }
    all
}

/// What these are asked lies in memory, where no filter looks; callers fall back to `openat` and `clone`.
fn enosys(kind: Filter) -> Vec<Refused> {
    let strict = (kind == Filter::Strict).then_some(libc::SYS_clone3);
    std::iter::once(libc::SYS_openat2).chain(strict).map(|call| (call, Vec::new())).collect()
}

/// A program that takes the rights of its owner outlives the sandbox in which it was made.
fn set_user_id() -> Vec<Refused> {
    // `S_ISUID`
    const BIT: u64 = 0o4000;
    let made = |at| Condition(at, SeccompCmpOp::MaskedEq(BIT), BIT);
    // A file without a name can be given one; of its flag only this bit is not that of a directory.
    let flags =
        [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY].map(|flag| u64::from(flag.unsigned_abs()));
    let opened = |at, mode| {
        Vec::from(flags.map(|flag| vec![Condition(at, SeccompCmpOp::MaskedEq(flag), flag), made(mode)]))
    };
    let mut all: Vec<Refused> = vec![
        (libc::SYS_fchmod, vec![vec![made(1)]]),
        (libc::SYS_fchmodat, vec![vec![made(2)]]),
        (SYS_FCHMODAT2, vec![vec![made(2)]]),
        (libc::SYS_mknodat, vec![vec![made(2)]]),
        (libc::SYS_openat, opened(2, 3)),
    ];
    #[cfg(target_arch = "x86_64")]
    all.extend([
        (libc::SYS_chmod, vec![vec![made(1)]]),
        (libc::SYS_creat, vec![vec![made(1)]]),
        (libc::SYS_mknod, vec![vec![made(1)]]),
        (libc::SYS_open, opened(1, 2)),
    ]);
    all
}

/// Ends a process that asks for a call by its x32 number: a second name of each call, which no rule by number sees.
/// -1 is no call at all.
#[cfg(target_arch = "x86_64")]
fn no_x32() -> BpfProgram {
    // `__X32_SYSCALL_BIT` of `asm/unistd.h`
    const BIT: u32 = 0x4000_0000;
    let to = |code: u32, jt, jf, k| sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k };
    let jump = |how, jt, jf, k| to(libc::BPF_JMP | libc::BPF_K | how, jt, jf, k);
    let end = |action| to(libc::BPF_RET | libc::BPF_K, 0, 0, action);
    vec![
        to(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0), // the number
        jump(libc::BPF_JEQ, 1, 0, u32::MAX),
        jump(libc::BPF_JGE, 1, 0, BIT),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_KILL_PROCESS),
    ]
}

fn program(refused: &[Refused], errno: libc::c_int) -> Result<BpfProgram, BackendError> {
    let mut rules = BTreeMap::new();
    for (call, any) in refused {
        let of = |all: &Vec<Condition>| {
            let one = |Condition(at, how, value): &Condition| {
                SeccompCondition::new(*at, SeccompCmpArgLen::Dword, how.clone(), *value)
            };
            SeccompRule::new(all.iter().map(one).collect::<Result<_, _>>()?)
        };
        rules.insert(*call, any.iter().map(of).collect::<Result<Vec<_>, BackendError>>()?);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()), arch)?;
    filter.try_into()
}

#[cfg(test)]
mod tests;
