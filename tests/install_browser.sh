#!/bin/sh
# Chromium for the tests of pages, in build/browser: Debian's packages, unpacked beside one another, without root.
# A browser that is installed already is left alone. Where there can be none, build/browser/missing says why.
cd "$(dirname "$0")/.." || exit 1
for name in chromium chromium-browser google-chrome google-chrome-stable build/browser/chromium; do
  command -v "$name" >/dev/null && exit 0
done
mkdir -p build/browser && cd build/browser || exit 1

give_up() {
  echo "There is no browser: $1. The tests of pages are skipped. Install one, for example: apt-get install chromium" |
    tee missing
  exit 0
}

command -v apt-get >/dev/null && command -v dpkg >/dev/null || give_up "only on Debian and Ubuntu make can fetch one"
echo "Fetching Chromium into build/browser ..."
mkdir -p lists/partial archives/partial root
apt="apt-get -qq -o Debug::NoLocking=1 -o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD"
apt="$apt -o Dir::Cache::archives=$PWD/archives -o APT::Sandbox::User=$(id -un) -o Acquire::http::Timeout=20"
timeout 300 $apt update >log 2>&1 && timeout 600 $apt install --yes --no-install-recommends --download-only chromium >>log 2>&1 ||
  give_up "the package archive cannot be reached (build/browser/log)"
for package in archives/*.deb; do
  dpkg -x "$package" root >>log 2>&1 || give_up "$package cannot be unpacked (build/browser/log)"
done
rm -rf lists archives ./*.bin
cat >starter <<'END'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
# Some packages keep libraries in folders of their own.
folders=$(find "$root" -name '*.so*' -printf '%h\n' | sort -u | tr '\n' ':')
LD_LIBRARY_PATH=$folders exec "$root/usr/lib/chromium/chromium" "$@"
END
chmod +x starter
./starter --headless --no-sandbox --version >>log 2>&1 || give_up "Chromium does not start (build/browser/log)"
mv starter chromium && rm -f missing
