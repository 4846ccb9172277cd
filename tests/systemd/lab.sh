#!/bin/bash
# A real systemd as PID 1 of namespaces of its own, over this machine's root, for trying units; nothing of the
# machine is changed and nothing stays.
#
#   lab.sh up LAB        boot, or boot again after `cut`; returns when the manager says that it is up
#   lab.sh in LAB CMD..  run a command in there; its exit status is ours
#   lab.sh cut LAB       SIGKILL to its PID 1: all processes end at once, and the disk stays
#   lab.sh down LAB      power off and remove all of it
#
# A warden in a mount namespace of its own keeps a tmpfs, the lab's disk, as the upper layer of an overlay. Each
# boot is a new set of namespaces that pivots into it and becomes systemd. Only the second version of control
# groups is mounted in there; controllers that the machine's first version holds are not handed down.
# It is for root, and no security boundary: root in there is root.
#
# LAB_FURNISH: a program run as `PROGRAM ROOT` before each boot, to put units and files into ROOT.
# LAB_UP_S (60): seconds for a boot. LAB_LIFE_S (900): a lab older than that is ended.
set -euo pipefail

SELF=$(readlink -f "${BASH_SOURCE[0]}")
LIFE=${LAB_LIFE_S:-900}

fail() { echo "lab: $*" >&2; exit 1; }

pid_of_init() { # as this machine numbers it: warden > timeout > unshare > PID 1
    local outer middle
    outer=$(cat "$1/boot.pid" 2>/dev/null) || return 1
    middle=$(pgrep -P "$outer" -x unshare) || return 1
    pgrep -P "$middle" -x systemd
}

warden() {
    local lab=$1 group status try
    mount --make-rprivate /
    mount -t tmpfs -o mode=755,size=1g lab-disk "$lab/disk"
    mkdir "$lab/disk/upper" "$lab/disk/work"
    mount -t cgroup2 lab-groups "$lab/groups"
    group=$lab/groups$(sed -n 's/^0:://p' /proc/self/cgroup)/resumed-lab-${lab##*/}
    while [ ! -e "$lab/leave" ] && [ "$SECONDS" -lt "$LIFE" ]; do
        if ! rm "$lab/boot" 2>/dev/null; then
            sleep 0.05
            continue
        fi
        mkdir -p "$group"
        (
            echo 0 >"$group/cgroup.procs"
            exec setpriv --pdeathsig KILL timeout --signal KILL "$LIFE" \
                unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup \
                bash "$SELF" become-init "$lab"
        ) &
        echo $! >"$lab/boot.pid"
        status=0
        wait $! || status=$?
        for try in $(seq 100); do # groups of what was just killed are busy for a moment
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
            [ -e "$group" ] || break
            sleep 0.02
        done
        rm -f "$lab/boot.pid"
        echo "$status" >"$lab/over"
    done
}

become-init() {
    local lab=$1 root=$1/root name
    [ $$ = 1 ] || fail 'this is no PID 1, and nothing is mounted'
    mount --make-rprivate /
    mount -t overlay -o "lowerdir=/,upperdir=$lab/disk/upper,workdir=$lab/disk/work" lab "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    for name in dev:755 run:755 tmp:1777; do
        mount -t tmpfs -o "mode=${name#*:}" tmpfs "$root/${name%:*}"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    while read -r name major minor; do
        mknod -m 666 "$root/dev/$name" c "$major" "$minor"
    done <<<$'null 1 3\nzero 1 5\nfull 1 7\nrandom 1 8\nurandom 1 9\ntty 5 0'
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"
    ln -s fd/1 "$root/dev/stdout"
    ln -s fd/2 "$root/dev/stderr"
    for name in sys sysrq-trigger irq bus; do # the machine's own switches: to be read, not to be turned
        [ ! -e "$root/proc/$name" ] || {
            mount --bind "$root/proc/$name" "$root/proc/$name"
            mount -o remount,bind,ro "$root/proc/$name"
        }
    done
    # Each boot of the lab is a boot, with an id of its own.
    cat /proc/sys/kernel/random/uuid >"$root/run/boot-id"
    mount --bind "$root/run/boot-id" "$root/proc/sys/kernel/random/boot_id"
    # What the machine has enabled does not start here.
    rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/*.requires
    [ -z "${LAB_FURNISH:-}" ] || "$LAB_FURNISH" "$root"
    cd "$root"
    mkdir -p .before
    pivot_root . .before
    umount --lazy /.before
    rmdir /.before
    mount --make-rshared /
    # `container=` keeps PID 1 away from devices, clocks, swap and file system checks.
    exec setpriv --bounding-set -sys_time,-sys_module,-sys_rawio,-sys_boot,-syslog,-wake_alarm,-block_suspend \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 container=lab \
        /lib/systemd/systemd --unit=multi-user.target
}

up() {
    local lab=$1 tool said='' limit
    [ "$(id -u)" = 0 ] || fail 'needs root'
    for tool in unshare nsenter setpriv pivot_root timeout pgrep /lib/systemd/systemd; do
        command -v "$tool" >/dev/null || fail "needs $tool"
    done
    if [ ! -e "$lab/warden.pid" ]; then
        mkdir -p "$lab/disk" "$lab/groups" "$lab/root"
        setsid unshare --mount --propagation private bash "$SELF" warden "$lab" \
            </dev/null >"$lab/console" 2>&1 &
        echo $! >"$lab/warden.pid"
    fi
    ! pid_of_init "$lab" >/dev/null || fail 'it is up already'
    rm -f "$lab/over"
    touch "$lab/boot"
    limit=$((SECONDS + ${LAB_UP_S:-60}))
    while [ "$SECONDS" -lt "$limit" ]; do
        kill -0 "$(cat "$lab/warden.pid")" 2>/dev/null || fail "the warden ended: $(tail -5 "$lab/console")"
        [ ! -e "$lab/over" ] || fail "the boot ended with $(cat "$lab/over"): $(tail -5 "$lab/console")"
        ! pid_of_init "$lab" >/dev/null || said=$(inside "$lab" systemctl is-system-running 2>/dev/null || :)
        case $said in running | degraded) return ;; esac
        sleep 0.05
    done
    fail "not up after ${LAB_UP_S:-60} s (it says: $said)"
}

inside() {
    local lab=$1 init
    shift
    init=$(pid_of_init "$lab") || fail 'it is not up'
    nsenter -t "$init" -m -u -i -n -p -C \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
}

is_over() { # LAB TENTHS-OF-A-SECOND
    local tenth
    for tenth in $(seq "$2"); do
        [ ! -e "$1/over" ] || return 0
        sleep 0.1
    done
    return 1
}

power_cut() {
    kill -KILL "$(pid_of_init "$1")" || fail 'it is not up'
    is_over "$1" 100 || fail 'it does not end'
}

down() {
    local lab=$1 init warden try
    [ -e "$lab/warden.pid" ] || return 0
    if init=$(pid_of_init "$lab"); then
        kill -RTMIN+3 "$init" # halt, as a container's manager says it
        is_over "$lab" 200 || { kill -KILL "$init" 2>/dev/null || :; is_over "$lab" 100 || :; }
    fi
    touch "$lab/leave"
    warden=$(cat "$lab/warden.pid")
    for try in $(seq 200); do
        kill -0 "$warden" 2>/dev/null || break
        sleep 0.05
    done
    rm -rf --one-file-system -- "$lab"
}

verb=${1:-}
[ $# -ge 2 ] || fail 'usage: lab.sh up|in|cut|down LAB [COMMAND ...]'
lab=$(realpath -m "$2")
shift 2
case $verb in
    in) inside "$lab" "$@" ;;
    up | down | warden | become-init) "$verb" "$lab" "$@" ;;
    cut) power_cut "$lab" ;;
    *) fail "no command named $verb" ;;
esac
