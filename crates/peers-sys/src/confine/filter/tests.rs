//! Every rule, one call after the other, by a program that makes the calls and tells what came of them.

use super::*;

#[test]
fn both_filters_are_programs_that_the_kernel_takes() {
    for kind in [Filter::Usual, Filter::Strict] {
        let built = program(&eperm(kind), libc::EPERM).unwrap();
        // BPF_MAXINSNS
        assert!(!built.is_empty() && built.len() <= 4096, "{kind:?}: {}", built.len());
    }
}

#[cfg(target_arch = "x86_64")]
mod probe {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::path::Path;
    use std::process::Command;

    use nix::sys::resource::{Resource, setrlimit};

    use super::super::*;
    use crate::testing;

    /// An error that none of the calls gives by itself.
    const OURS: libc::c_int = libc::EADDRNOTAVAIL;
    /// No descriptor, no address, no process, and as flags more than any call knows.
    const BAD: u64 = u64::MAX;
    /// Set-user-ID, and a mode beside it.
    const MADE: u64 = 0o4755;
    const NOT_MADE: u64 = 0o3755;
    /// Above the 32 bits that the kernel looks at.
    const HIGH: u64 = 0xdead_beef_0000_0000;

    /// A call, its arguments, and which filters refuse it.
    struct Probe {
        name: String,
        call: libc::c_long,
        args: [u64; 6],
        usual: bool,
        strict: bool,
    }

    impl Probe {
        fn refused(&self, kind: Filter) -> bool {
            match kind {
                Filter::Usual => self.usual,
                Filter::Strict => self.strict,
            }
        }
    }

    fn probe(name: impl Into<String>, call: libc::c_long, args: &[u64], refused: bool) -> Probe {
        let mut all = [BAD; 6];
        all[..args.len()].copy_from_slice(args);
        Probe { name: name.into(), call, args: all, usual: refused, strict: refused }
    }

    /// Refused whatever they are asked, told apart from the list in the product.
    const WHATEVER: [(&str, libc::c_long); 48] = [
        ("acct", libc::SYS_acct),
        ("add_key", libc::SYS_add_key),
        ("adjtimex", libc::SYS_adjtimex),
        ("bpf", libc::SYS_bpf),
        ("chroot", libc::SYS_chroot),
        ("clock_adjtime", libc::SYS_clock_adjtime),
        ("clock_settime", libc::SYS_clock_settime),
        ("delete_module", libc::SYS_delete_module),
        ("finit_module", libc::SYS_finit_module),
        ("fsconfig", libc::SYS_fsconfig),
        ("fsmount", libc::SYS_fsmount),
        ("fsopen", libc::SYS_fsopen),
        ("fspick", libc::SYS_fspick),
        ("init_module", libc::SYS_init_module),
        ("io_uring_enter", libc::SYS_io_uring_enter),
        ("io_uring_register", libc::SYS_io_uring_register),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("ioperm", libc::SYS_ioperm),
        ("iopl", libc::SYS_iopl),
        ("kcmp", libc::SYS_kcmp),
        ("kexec_file_load", libc::SYS_kexec_file_load),
        ("kexec_load", libc::SYS_kexec_load),
        ("keyctl", libc::SYS_keyctl),
        ("lookup_dcookie", libc::SYS_lookup_dcookie),
        ("mount", libc::SYS_mount),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("move_mount", libc::SYS_move_mount),
        ("nfsservctl", libc::SYS_nfsservctl),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("open_tree", libc::SYS_open_tree),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("pivot_root", libc::SYS_pivot_root),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("process_vm_writev", libc::SYS_process_vm_writev),
        ("ptrace", libc::SYS_ptrace),
        ("quotactl", libc::SYS_quotactl),
        ("quotactl_fd", libc::SYS_quotactl_fd),
        ("reboot", libc::SYS_reboot),
        ("request_key", libc::SYS_request_key),
        ("setns", libc::SYS_setns),
        ("settimeofday", libc::SYS_settimeofday),
        ("swapoff", libc::SYS_swapoff),
        ("swapon", libc::SYS_swapon),
        ("syslog", libc::SYS_syslog),
        ("umount2", libc::SYS_umount2),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("vhangup", libc::SYS_vhangup),
    ];

    fn flag(flag: libc::c_int) -> u64 {
        flag.unsigned_abs().into()
    }

    /// What is refused for what it is asked, and what is asked beside that.
    fn by_argument() -> Vec<Probe> {
        let (unix, inet, packet) = (flag(libc::AF_UNIX), flag(libc::AF_INET), flag(libc::AF_PACKET));
        let (stream, raw) = (flag(libc::SOCK_STREAM), flag(libc::SOCK_RAW));
        let flags = flag(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        let (create, temporary) = (flag(libc::O_CREAT), flag(libc::O_TMPFILE | libc::O_RDWR));
        vec![
            probe("ioctl TIOCSTI", libc::SYS_ioctl, &[BAD, 0x5412], true),
            probe("ioctl TIOCLINUX", libc::SYS_ioctl, &[BAD, 0x541c], true),
            probe("ioctl TIOCSTI with more bits", libc::SYS_ioctl, &[BAD, HIGH | 0x5412], true),
            probe("ioctl TIOCGWINSZ", libc::SYS_ioctl, &[BAD, 0x5413], false),
            probe("ioctl TCGETS", libc::SYS_ioctl, &[BAD, 0x5401], false),
            probe("personality without random addresses", libc::SYS_personality, &[0x0004_0000], true),
            probe("personality of 32 bits", libc::SYS_personality, &[8], true),
            probe("personality of Linux", libc::SYS_personality, &[0], false),
            probe("personality asked for", libc::SYS_personality, &[0xffff_ffff], false),
            probe("socket of packets", libc::SYS_socket, &[packet, stream, 0], true),
            probe("socket of a hypervisor", libc::SYS_socket, &[flag(libc::AF_VSOCK), stream, 0], true),
            probe("socket of ciphers", libc::SYS_socket, &[flag(libc::AF_ALG), stream, 0], true),
            probe("socket of packets with more bits", libc::SYS_socket, &[HIGH | packet, stream, 0], true),
            probe("raw socket", libc::SYS_socket, &[inet, raw, 1], true),
            probe("raw socket with flags", libc::SYS_socket, &[inet, raw | flags, 1], true),
            probe("raw socket of IPv6", libc::SYS_socket, &[flag(libc::AF_INET6), raw, 58], true),
            probe("socket of streams", libc::SYS_socket, &[inet, stream | flags, 0], false),
            probe("socket of datagrams", libc::SYS_socket, &[inet, flag(libc::SOCK_DGRAM) | flags, 0], false),
            probe("socket of records", libc::SYS_socket, &[unix, flag(libc::SOCK_SEQPACKET), 0], false),
            probe("fchmod set-user-ID", libc::SYS_fchmod, &[BAD, MADE], true),
            probe("fchmod", libc::SYS_fchmod, &[BAD, NOT_MADE], false),
            probe("chmod set-user-ID", libc::SYS_chmod, &[BAD, MADE], true),
            probe("chmod", libc::SYS_chmod, &[BAD, NOT_MADE], false),
            probe("fchmodat set-user-ID", libc::SYS_fchmodat, &[BAD, BAD, MADE], true),
            probe("fchmodat", libc::SYS_fchmodat, &[BAD, BAD, NOT_MADE], false),
            probe("fchmodat2 set-user-ID", 452, &[BAD, BAD, MADE], true),
            probe("fchmodat2", 452, &[BAD, BAD, NOT_MADE], false),
            probe("mknod set-user-ID", libc::SYS_mknod, &[BAD, 0o10_0000 | MADE, 0], true),
            probe("mknod", libc::SYS_mknod, &[BAD, 0o10_0000 | NOT_MADE, 0], false),
            probe("mknodat set-user-ID", libc::SYS_mknodat, &[BAD, BAD, 0o10_0000 | MADE, 0], true),
            probe("mknodat", libc::SYS_mknodat, &[BAD, BAD, 0o10_0000 | NOT_MADE, 0], false),
            probe("creat set-user-ID", libc::SYS_creat, &[BAD, MADE], true),
            probe("creat", libc::SYS_creat, &[BAD, NOT_MADE], false),
            probe("open made set-user-ID", libc::SYS_open, &[BAD, create, MADE], true),
            probe("open without a name set-user-ID", libc::SYS_open, &[BAD, temporary, MADE], true),
            probe("open made", libc::SYS_open, &[BAD, create, NOT_MADE], false),
            probe("open what is there", libc::SYS_open, &[BAD, 0, MADE], false),
            probe("open a directory", libc::SYS_open, &[BAD, flag(libc::O_DIRECTORY), MADE], false),
            probe("openat made set-user-ID", libc::SYS_openat, &[BAD, BAD, create, MADE], true),
            probe("openat without a name set-user-ID", libc::SYS_openat, &[BAD, BAD, temporary, MADE], true),
            probe("openat made", libc::SYS_openat, &[BAD, BAD, create, NOT_MADE], false),
            probe("openat what is there", libc::SYS_openat, &[BAD, BAD, 0, MADE], false),
            probe("openat a directory", libc::SYS_openat, &[BAD, BAD, flag(libc::O_DIRECTORY), MADE], false),
            probe("getppid", libc::SYS_getppid, &[], false),
        ]
    }

    /// The last of them make nothing where they are allowed: they ask for what does not go together.
    fn namespaces() -> Vec<Probe> {
        let new = [
            ("mounts", libc::CLONE_NEWNS),
            ("control groups", libc::CLONE_NEWCGROUP),
            ("host names", libc::CLONE_NEWUTS),
            ("System V objects", libc::CLONE_NEWIPC),
            ("users", libc::CLONE_NEWUSER),
            ("processes", libc::CLONE_NEWPID),
            ("networks", libc::CLONE_NEWNET),
        ];
        // Handlers of signals without memory for `clone`, and what `unshare` does not know.
        let (shared_handlers, unknown) = (flag(libc::CLONE_SIGHAND), 1);
        let strict = |probe| Probe { usual: false, ..probe };
        let mut all = Vec::new();
        for (what, new) in new {
            let unshare = [flag(new) | unknown];
            all.push(strict(probe(format!("unshare {what}"), libc::SYS_unshare, &unshare, true)));
            let clone = [flag(new) | shared_handlers];
            all.push(strict(probe(format!("clone with new {what}"), libc::SYS_clone, &clone, true)));
        }
        all.push(probe(
            "unshare descriptors",
            libc::SYS_unshare,
            &[flag(libc::CLONE_FILES) | unknown],
            false,
        ));
        all.push(probe("clone", libc::SYS_clone, &[shared_handlers], false));
        all
    }

    fn said_no() -> Vec<Probe> {
        let whatever = WHATEVER.map(|(name, call)| probe(name, call, &[], true));
        whatever.into_iter().chain(by_argument()).chain(namespaces()).collect()
    }

    fn said_absent() -> Vec<Probe> {
        let clone3 = Probe { usual: false, ..probe("clone3", libc::SYS_clone3, &[], true) };
        vec![probe("openat2", libc::SYS_openat2, &[], true), clone3]
    }

    /// A program for this machine that makes the calls and writes what each gave, eight bytes a call.
    fn caller(calls: &[Probe]) -> Vec<u8> {
        const BASE: u64 = 0x40_0000;
        const HEADERS: u64 = 64 + 56;
        let count = u32::try_from(calls.len()).unwrap();
        let code = |table: u32| {
            let mut code: Vec<u8> = Vec::new();
            code.extend([0x41, 0xbc]); // mov r12d, table
            code.extend(table.to_le_bytes());
            code.extend([0x41, 0xbd]); // mov r13d, count
            code.extend(count.to_le_bytes());
            let again = code.len();
            code.extend([0x49, 0x8b, 0x04, 0x24]); // mov rax, [r12]
            code.extend([0x49, 0x8b, 0x7c, 0x24, 8]); // mov rdi, [r12 + 8]
            code.extend([0x49, 0x8b, 0x74, 0x24, 16]); // mov rsi, [r12 + 16]
            code.extend([0x49, 0x8b, 0x54, 0x24, 24]); // mov rdx, [r12 + 24]
            code.extend([0x4d, 0x8b, 0x54, 0x24, 32]); // mov r10, [r12 + 32]
            code.extend([0x4d, 0x8b, 0x44, 0x24, 40]); // mov r8, [r12 + 40]
            code.extend([0x4d, 0x8b, 0x4c, 0x24, 48]); // mov r9, [r12 + 48]
            code.extend([0x0f, 0x05]); // syscall
            code.push(0x50); // push rax
            code.extend([0xb8, 1, 0, 0, 0]); // mov eax, write
            code.extend([0xbf, 1, 0, 0, 0]); // mov edi, stdout
            code.extend([0x48, 0x89, 0xe6]); // mov rsi, rsp
            code.extend([0xba, 8, 0, 0, 0]); // mov edx, 8
            code.extend([0x0f, 0x05]); // syscall
            code.push(0x58); // pop rax
            code.extend([0x49, 0x83, 0xc4, 56]); // add r12, 56
            code.extend([0x41, 0xff, 0xcd]); // dec r13d
            let back = i8::try_from(code.len() + 2 - again).unwrap();
            code.extend([0x75, (-back).cast_unsigned()]); // jnz again
            code.extend(EXIT);
            code
        };
        let table = BASE + HEADERS + u64::try_from(code(0).len()).unwrap();
        let mut all = code(u32::try_from(table).unwrap());
        for Probe { call, args, .. } in calls {
            all.extend(call.to_le_bytes());
            all.extend(args.iter().flat_map(|arg| arg.to_le_bytes()));
        }
        elf(&all)
    }

    /// `mov eax, exit_group; xor edi, edi; syscall`
    const EXIT: [u8; 9] = [0xb8, 231, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];

    /// An executable file of this code, which begins at once.
    fn elf(code: &[u8]) -> Vec<u8> {
        const BASE: u64 = 0x40_0000;
        let size = 64 + 56 + u64::try_from(code.len()).unwrap();
        // 64 bits, little-endian, version 1.
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        let halves = |file: &mut Vec<u8>, all: &[u16]| file.extend(all.iter().flat_map(|n| n.to_le_bytes()));
        let longs = |file: &mut Vec<u8>, all: &[u64]| file.extend(all.iter().flat_map(|n| n.to_le_bytes()));
        halves(&mut file, &[2, 62, 1, 0]); // an executable for x86-64
        longs(&mut file, &[BASE + 64 + 56, 64, 0]); // entry, program headers, no sections
        halves(&mut file, &[0, 0, 64, 56, 1, 64, 0, 0]); // sizes, one program header
        halves(&mut file, &[1, 0, 5, 0]); // loaded, to be read and executed
        longs(&mut file, &[0, BASE, BASE, size, size, 0x1000]);
        file.extend(code);
        file
    }

    fn written(place: &Path, program: &[u8]) -> Command {
        let path = place.join("calls");
        std::fs::write(&path, program).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        Command::new(path)
    }

    /// Becomes a program; returns where none can be started from there, and says so.
    fn become_program(mut command: Command, wall: impl FnOnce()) {
        // A call that is not refused must not reach a terminal.
        rustix::process::setsid().unwrap();
        // The end of the process by a filter leaves a core behind.
        setrlimit(Resource::RLIMIT_CORE, 0, 0).unwrap();
        wall();
        let error = command.exec();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        eprintln!("not shown: {error}: {}", command.get_program().display());
    }

    /// What each of the calls gave behind a wall, by its name; none where the program cannot be started.
    fn given(test: &str, step: &str, calls: &[Probe]) -> Vec<i64> {
        let tmp = tempfile::tempdir().unwrap();
        let ended = testing::run_child(test, tmp.path(), step);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{step}: {}: {said}", ended.status);
        if said.contains("not shown") {
            eprintln!("{said}");
            return Vec::new();
        }
        // What the test harness said comes first.
        let at = ended.stdout.len().checked_sub(8 * calls.len()).unwrap();
        let words = ended.stdout[at..].chunks_exact(8);
        words.map(|word| i64::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// What a filter refuses in one way.
    type Rules = fn(Filter) -> Vec<Refused>;

    fn kind(step: &str) -> Filter {
        Filter::named(step).unwrap()
    }

    #[test]
    fn every_rule_refuses_its_call_and_nothing_beside_it() {
        let test = "confine::filter::tests::probe::every_rule_refuses_its_call_and_nothing_beside_it";
        let lists: [(&str, Rules, Vec<Probe>); 2] =
            [("no", eperm, said_no()), ("absent", enosys, said_absent())];
        if let Some(place) = testing::child_place(test) {
            let step = testing::child_step();
            let (list, name) = step.split_once(' ').unwrap();
            let (_, rules, calls) = lists.into_iter().find(|(known, ..)| *known == list).unwrap();
            return become_program(written(&place, &caller(&calls)), || {
                seccompiler::apply_filter(&program(&rules(kind(name)), OURS).unwrap()).unwrap();
            });
        }
        for (list, rules, calls) in &lists {
            for name in [Filter::Usual, Filter::Strict].map(Filter::name) {
                for (call, _) in rules(kind(name)) {
                    let tried = |probe: &&Probe| probe.call == call && probe.refused(kind(name));
                    assert!(calls.iter().any(|probe| tried(&probe)), "nothing here tries {call} of {name}");
                }
                for (probe, given) in calls.iter().zip(given(test, &format!("{list} {name}"), calls)) {
                    let refused = given == -i64::from(OURS);
                    assert_eq!(refused, probe.refused(kind(name)), "{name}: {}: {given}", probe.name);
                }
            }
        }
    }

    #[test]
    fn what_is_refused_says_that_it_is_not_permitted_or_not_there() {
        let test =
            "confine::filter::tests::probe::what_is_refused_says_that_it_is_not_permitted_or_not_there";
        let calls: Vec<Probe> = said_no().into_iter().chain(said_absent()).collect();
        if let Some(place) = testing::child_place(test) {
            let kind = kind(&testing::child_step());
            return become_program(written(&place, &caller(&calls)), || apply(kind).unwrap());
        }
        let absent = said_absent().len();
        for name in [Filter::Usual, Filter::Strict].map(Filter::name) {
            for (at, (probe, given)) in calls.iter().zip(given(test, name, &calls)).enumerate() {
                if probe.refused(kind(name)) {
                    let errno = if at < calls.len() - absent { libc::EPERM } else { libc::ENOSYS };
                    assert_eq!(given, -i64::from(errno), "{name}: {}", probe.name);
                }
            }
        }
    }

    /// `getppid` by its name in x32, and what is no call at all: `mov eax, n; syscall`
    #[test]
    fn a_call_of_x32_is_the_end_of_the_process_and_what_is_no_call_is_not() {
        let test = "confine::filter::tests::probe::a_call_of_x32_is_the_end_of_the_process_and_what_is_no_call_is_not";
        let numbers = [("x32", 0x4000_006e_u32), ("none", u32::MAX)];
        if let Some(place) = testing::child_place(test) {
            let step = testing::child_step();
            let (name, wall) = step.split_once(' ').unwrap();
            let (_, number) = numbers.into_iter().find(|(known, _)| *known == name).unwrap();
            let code = [&[0xb8][..], &number.to_le_bytes(), &[0x0f, 0x05], &EXIT].concat();
            return become_program(written(&place, &elf(&code)), || {
                if let Some(kind) = Filter::named(wall) {
                    apply(kind).unwrap();
                }
            });
        }
        let tmp = tempfile::tempdir().unwrap();
        let ended = |step: &str| testing::run_child(test, tmp.path(), step);
        let free = ended("x32 free");
        if !free.status.success() || !free.stderr.is_empty() {
            return eprintln!("not shown: {free:?}");
        }
        for wall in [Filter::Usual, Filter::Strict].map(Filter::name) {
            let walled = ended(&format!("x32 {wall}"));
            assert_eq!(walled.status.signal(), Some(libc::SIGSYS), "{wall}: {walled:?}");
            let none = ended(&format!("none {wall}"));
            assert!(none.status.success(), "{wall}: {none:?}");
        }
    }

    #[test]
    fn a_call_of_another_architecture_is_the_end_of_the_process() {
        let test = "confine::filter::tests::probe::a_call_of_another_architecture_is_the_end_of_the_process";
        if let Some(place) = testing::child_place(test) {
            // `mov eax, 20; int 0x80`: `getpid` of 32 bits.
            let code = [&[0xb8, 20, 0, 0, 0, 0xcd, 0x80][..], &EXIT].concat();
            let walled = testing::child_step() == "walled";
            return become_program(written(&place, &elf(&code)), || {
                if walled {
                    apply(Filter::Usual).unwrap();
                }
            });
        }
        let tmp = tempfile::tempdir().unwrap();
        let ended = ["free", "walled"].map(|step| testing::run_child(test, tmp.path(), step));
        let [free, walled] = &ended;
        if !free.status.success() || !free.stderr.is_empty() {
            return eprintln!("not shown: no such calls here: {free:?}");
        }
        assert_eq!(walled.status.signal(), Some(libc::SIGSYS), "{walled:?}");
    }
}
