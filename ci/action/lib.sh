# shellcheck shell=bash
# What the Action's scripts share. Sourced by bash, also the old one of macOS (3.2): no maps, no mapfile.
#
# Everything from outside comes in as environment variables (action.yml) and is hostile: branch names,
# titles and file names may hold anything. Nothing is evaluated, everything is quoted.

# tell_why TEXT: why there is no verdict, for the job's summary, and for the job that posts, which finds it in the
# artifact. As code by its indent, which nothing in one line can end.
tell_why() {
  local text
  text=$(one_line "$1")
  [[ -z ${GITHUB_STEP_SUMMARY:-} ]] || printf '**weir: no verdict**\n\n    %s\n\n' "$text" >>"$GITHUB_STEP_SUMMARY"
  [[ ! -d ${WEIR_FILES:-} ]] || printf '%s\n' "$text" >"$WEIR_FILES/why"
}

# say TEXT: a line of talk that is never a command to the runner.
say() { printf 'weir: %s\n' "$(one_line "$1")"; }

# warn TEXT, notice TEXT, die TEXT: shown on the run's page; die ends the step as a usage error, and tells why. To
# standard error, where the runner reads commands as well: standard output may be caught.
warn() { printf '::warning title=weir::%s\n' "$(escaped "$1")" >&2; }
notice() { printf '::notice title=weir::%s\n' "$(escaped "$1")" >&2; }
die() {
  tell_why "$1"
  printf '::error title=weir::%s\n' "$(escaped "$1")" >&2
  exit 2
}

# one_line TEXT: without control characters, and without what older runners take for a command
# wherever it stands in a line.
one_line() {
  local text
  text=$(printf '%s' "$1" | LC_ALL=C tr -c '[:print:]\200-\377' ' ')
  printf '%s' "${text//##[/## [}"
}

# escaped TEXT: as the message of a workflow command.
escaped() {
  local text
  text=$(one_line "$1")
  printf '%s' "${text//\%/%25}"
}

# output NAME VALUE: to GITHUB_OUTPUT, under a delimiter that VALUE cannot hold.
output() {
  local mark="weir_${RANDOM}${RANDOM}${RANDOM}"
  while [[ $2 == *"$mark"* ]]; do mark=$mark$RANDOM; done
  printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

# yes_or_no NAME VALUE: dies where an input is neither true nor false.
yes_or_no() {
  case $2 in
    true | false) ;;
    *) die "input \"$1\" is \"$2\": true or false is meant" ;;
  esac
}

# value_of KEY FILE: a word that stands at the top of weir.verdict/1, as weir writes it (one key a
# line, one blank before it: text from outside cannot look like that, a string holds no line break).
value_of() { sed -n "s/^ \"$1\": \"\([A-Za-z0-9_./:@+-]*\)\",\{0,1\}\$/\1/p" "$2" | head -n 1; }

# cells_with VERDICT FILE: how many cells have it, from "totals".
cells_with() {
  local number
  number=$(sed -n "/^ \"totals\": {/,/^ }/s/^  \"$1\": \([0-9]*\),\{0,1\}\$/\1/p" "$2" | head -n 1)
  printf '%s' "${number:-0}"
}

# git_setting KEY VALUE: for this step's git and weir's. By the environment: every user of the machine can read
# command lines.
git_setting() {
  local known=${GIT_CONFIG_COUNT:-0}
  export GIT_CONFIG_COUNT=$((known + 1)) "GIT_CONFIG_KEY_$known=$1" "GIT_CONFIG_VALUE_$known=$2"
}

# A commit can hold a folder that looks like a repository, with settings that run programs. No git here asks one,
# starts a hook, or takes one commit for another.
git_setting safe.bareRepository explicit
git_setting core.fsmonitor false
git_setting core.hooksPath /dev/null
git_setting protocol.ext.allow never
export GIT_NO_REPLACE_OBJECTS=1
# Nobody is there to type a user name.
export GIT_TERMINAL_PROMPT=0

# trust_checkout: in a container job the workspace belongs to another user than the one the steps run
# as, and git refuses it. Said for this step's git alone, and what it starts; not where there is none.
# Dies in a folder whose repository is not that of the work tree around it (older git has no safe.bareRepository).
trust_checkout() {
  local said top
  if ! said=$(git rev-parse --git-dir 2>&1) && [[ $said == *safe.directory* ]]; then
    git_setting safe.directory '*'
  fi
  if ! said=$(LC_ALL=C git rev-parse --show-toplevel 2>&1); then
    [[ $said != *safe.bareRepository* && $said != *"must be run in a work tree"* ]] || die "$(one_line "$PWD"): looks like a repository, and is none"
    return 0
  fi
  top=$said
  [[ -e $top/.git && $(git -C "$top" rev-parse --absolute-git-dir) == "$(git rev-parse --absolute-git-dir)" ]] ||
    die "$(one_line "$PWD"): looks like a repository, and is none"
}

# new_repository FOLDER: without hooks; attributes of its files start no filter.
new_repository() {
  git init -q --template= "$1"
  mkdir -p "$1/.git/info"
  printf '* -filter -diff -merge -ident -text -working-tree-encoding\n' >"$1/.git/info/attributes"
}

# commit_of NAME: the commit of an id, HEAD, HEAD^N or a full name. git completes a full name that is not there to a
# tag: refs/tags/refs/….
commit_of() {
  local commit
  case $1 in
    HEAD | HEAD^[12]) ;;
    refs/*) git show-ref --verify --quiet "$1" || return 1 ;;
    *) [[ $1 =~ ^[0-9a-f]{40}([0-9a-f]{24})?$ ]] || return 1 ;;
  esac
  commit=$(git rev-parse --quiet --verify "$1^{commit}") || return 1
  [[ $1 == HEAD* || $1 == refs/* || $commit == "$1" ]] || return 1
  printf '%s' "$commit"
}

# full_ref NAME: "origin/main" is a branch of origin, and no tag of that name; others stay as they are.
full_ref() {
  if [[ $1 == origin/* ]]; then printf 'refs/remotes/%s' "$1"; else printf '%s' "$1"; fi
}

# fetch_branch NAME: of origin, to refs/remotes/origin/NAME, its last commit alone. 1 where there is no such branch.
fetch_branch() {
  git check-ref-format "refs/heads/$1" || die "\"$(one_line "$1")\" is no branch name"
  local there
  there=$(git ls-remote --heads origin "refs/heads/$1") || die "origin cannot be asked for its branches"
  [[ -n $there ]] || return 1
  git fetch -q --depth=1 --no-tags --no-recurse-submodules origin "+refs/heads/$1:refs/remotes/origin/$1" ||
    die "branch $1 could not be fetched"
}

# add_words PREFIX LINES: to $words, PREFIX and each line that is not empty.
add_words() {
  local line
  while IFS= read -r line; do
    [[ -z $line ]] || words+=("$1$line")
  done <<<"$2"
}

# header NAME ANSWER: of what gh api --include has left in a file.
header() { sed $'/^\r*$/q' "$2" | tr -d '\r' | tr '[:upper:]' '[:lower:]' | sed -n "s/^$1: *//p" | head -n 1; }

# seconds_to_wait ANSWER ATTEMPT: before GitHub is asked again, by the rules that it has for its limits; "" where its
# answer stands.
seconds_to_wait() {
  local status named reset
  status=$(sed -n '1s#^HTTP/[0-9.]* \([0-9]*\).*#\1#p' "$1")
  case $status in
    403 | 429)
      named=$(header retry-after "$1") reset=$(header x-ratelimit-reset "$1")
      if [[ $named =~ ^[0-9]{1,9}$ ]]; then
        printf '%s' "$named"
      elif [[ $(header x-ratelimit-remaining "$1") == 0 && $reset =~ ^[0-9]{1,12}$ ]]; then
        reset=$((reset - $(date +%s)))
        printf '%s' $((reset > 0 ? reset : 0))
      elif [[ $status == 429 ]] || grep -qi 'secondary rate limit' "$1"; then
        printf '%s' $((60 << ($2 - 1)))
      fi
      ;;
    5??) printf '%s' $((1 << $2)) ;;
  esac
}

# ask_github WORDS...: what gh api reads. Where GitHub limits requests, or is down, it asks again when GitHub says so, five
# times and within ten minutes: jobs that post have twenty.
ask_github() {
  local answer attempt wait left=600 code=0
  answer=$(mktemp "$RUNNER_TEMP/weir-answer.XXXXXX")
  for attempt in 1 2 3 4 5; do
    code=0
    gh api --include "$@" >"$answer" 2>"$answer.said" || code=$?
    ((code != 0)) || break
    wait=$(seconds_to_wait "$answer" "$attempt")
    [[ -n $wait && $attempt != 5 ]] || break
    if ((wait > left)); then
      notice "GitHub limits requests for another $wait s: longer than this job waits"
      break
    fi
    notice "GitHub limits requests, or is down: asking again in $wait s"
    sleep "$wait"
    left=$((left - wait))
  done
  if ((code == 0)); then LC_ALL=C sed $'1,/^\r*$/d' "$answer"; else inert <"$answer.said" >&2; fi
  rm -f "$answer" "$answer.said"
  return "$code"
}

# waiver_words REF BRANCH BASE COMMIT: whose waivers on REF hold for what is judged, as words of weir gate, one a line:
# the event's pull request, and those that COMMIT, or BASE already, has merged into BRANCH, or that BRANCH's merge queue
# has put there. Asks GitHub with $GH_TOKEN, and only where REF holds waivers.
waiver_words() {
  local ref=$1 branch=$2 from=$3 to=$4 number pull base head merge
  printf '%s\n' "--waivers-ref=$ref" "--base=$branch"
  for number in $(git ls-tree --name-only "$ref" waivers/ | sed -n 's#^waivers/\([1-9][0-9]\{0,17\}\)[.]json$#\1#p' | head -n 100); do
    if ! pull=$(ask_github "repos/$GITHUB_REPOSITORY/pulls/$number" \
      --jq '[.base.ref, .head.sha, if .merged then .merge_commit_sha else "" end] | @tsv'); then
      notice "GitHub does not say whether pull request $number is merged, so its waivers do not hold: the job needs pull-requests: read"
      continue
    fi
    IFS=$'\t' read -r base head merge <<<"$pull"
    [[ $base == "$branch" && $head =~ ^[0-9a-f]{40}([0-9a-f]{24})?$ ]] || continue
    # Only GitHub writes the branches of a queue; a number is in at most one of them.
    [[ -n $merge ]] || merge=$(git ls-remote origin "refs/heads/gh-readonly-queue/$branch/pr-$number-*" | cut -f 1 | head -n 1)
    [[ -n $merge ]] || continue
    if git merge-base --is-ancestor "$merge" "$from" 2>/dev/null; then
      printf '%s\n' "--base-pr=$number@$head"
    elif git merge-base --is-ancestor "$merge" "$to" 2>/dev/null; then
      printf '%s\n' "--merged-pr=$number@$head"
    fi
  done
}

# use_token ORIGIN TOKEN: git asks ORIGIN with it.
use_token() {
  [[ $1 == https://* ]] || return 0
  git_setting "http.$1.extraheader" "AUTHORIZATION: basic $(printf 'x-access-token:%s' "$2" | base64 | tr -d '\n')"
}

# with_token COMMAND...: git below it asks $origin with $WEIR_TOKEN. What reads the records of a run has no token.
with_token() (
  use_token "$origin" "$WEIR_TOKEN"
  "$@"
)

# inert: names of cells and machines are in what weir prints; no line of it is a command to the runner.
inert() { sed -e 's/##\[/## [/g' -e 's/^[[:space:]]*::/ : :/'; }

# fetch_artifact RUN NAME ZIP: the archive that the gate NAME of the workflow run RUN left, unread. 1, with
# the reason in $why, where there is none; GitHub that does not answer is no answer about the run.
fetch_artifact() {
  local found size most=$((256 << 20))
  [[ $1 =~ ^[0-9]{1,20}$ ]] || die "there is no workflow run to take an artifact of"
  command -v gh >/dev/null || die "gh is missing: hosted runners have it"
  # The newest one: a run that was attempted again may have several.
  found=$(ask_github --method GET "repos/$GITHUB_REPOSITORY/actions/runs/$1/artifacts" -F per_page=100 -f "name=weir-$2" \
    --jq '[.artifacts[] | select(.expired | not)] | max_by(.id) | "\(.id) \(.size_in_bytes)"') ||
    die "GitHub does not say what run $1 left"
  why="the run left no artifact weir-$2"
  [[ $found =~ ^([0-9]+)\ ([0-9]+)$ ]] || return 1
  found=${BASH_REMATCH[1]} size=${BASH_REMATCH[2]}
  why="the artifact has $size bytes: more than a run of weir has"
  ((size <= most)) || return 1
  ask_github "repos/$GITHUB_REPOSITORY/actions/artifacts/$found/zip" >"$3" || die "the artifact could not be fetched"
  why=''
}

# members ZIP PATTERN: the names in an archive that are wholly PATTERN; a name that unzip could take for a pattern, or
# that leads out, must not be one. 2001 of them are too many.
members() {
  { env -i PATH="$PATH" unzip -Z1 "$1" 2>/dev/null || true; } | head -c 4000000 | { LC_ALL=C grep -aEx "$2" || true; } | LC_ALL=C sort -u | head -n 2001
}

# unpack ZIP FOLDER MEMBER...: these files of an archive that anybody may have made, up to 128 MiB and for a minute in
# all. Each is read by its name, as a stream with a limit: no other member, no link and no path of the archive comes to
# be on the disk. One that is refused counts as well: the archive is over its limit then, and no other is read.
unpack() {
  local zip=$1 folder=$2 member place size most=$((128 << 20)) end=$((SECONDS + 60))
  shift 2
  command -v unzip >/dev/null || die "unzip is missing: hosted runners have it"
  for member; do
    if ((most <= 0 || SECONDS >= end)); then
      notice "the archive has more than 128 MiB of records, or takes more than a minute: the rest is not read"
      break
    fi
    place=$folder/$member
    mkdir -p "${place%/*}"
    # A bomb stops unzip by its closed pipe: that is no error here, the size is checked.
    { env -i PATH="$PATH" unzip -p "$zip" "$member" 2>/dev/null || true; } | head -c $((most + 1)) >"$place"
    size=$(wc -c <"$place")
    if ((size == 0 || size > most)); then rm "$place"; fi
    most=$((most - size))
  done
}
