#!/usr/bin/env bash
# The installed package works: a program is built against it with pkg-config and with find_package, shared and static.
# Usage: package.sh BUILD_DIR C_COMPILER
set -euo pipefail
build=$1 cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/install.log"
cd "$work"

cat >tiny.c <<'END'
#include <moirai/moirai.h>
#include <stdio.h>
int main(void)
{
    moirai_graph *g;
    if (moirai_zoo_graph(&g, "gpt3-tiny", 4))
        return puts(moirai_error_message()), 1;
    printf("%s %d\n", g->name, g->n_ops);
    moirai_graph_free(g);
    return 0;
}
END
expect=$("$prefix"/bin/moirai zoo gpt3-tiny --json | sed -n 's/.*"ops": \([0-9]*\).*/gpt3-tiny \1/p')
[ -n "$expect" ]
verify() {
    [ "$($1)" = "$expect" ] || { echo "FAILED: $2"; exit 1; }
    echo "ok: $2"
}

pc=$(find "$prefix" -name moirai.pc)
export PKG_CONFIG_PATH=$(dirname "$pc")
lib=$(cd "$(dirname "$pc")/.." && pwd)
$cc tiny.c $(pkg-config --cflags --libs moirai) -Wl,-rpath,"$lib" -o shared
verify ./shared "pkg-config, shared"
$cc tiny.c $(pkg-config --cflags moirai) "$lib/libmoirai.a" $(pkg-config --static --libs-only-l moirai | sed 's/-lmoirai//') -o static
verify ./static "pkg-config, static"

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(tiny C CXX)
find_package(moirai 0.1 REQUIRED)
add_executable(shared tiny.c)
target_link_libraries(shared PRIVATE moirai::moirai)
add_executable(static tiny.c)
target_link_libraries(static PRIVATE moirai::static)
END
cmake -G Ninja -S . -B b -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >cmake.log || { cat cmake.log; exit 1; }
cmake --build b >build.log 2>&1 || { cat build.log; exit 1; }
verify b/shared "find_package, shared"
verify b/static "find_package, static"

for page in "$prefix"/share/doc/moirai/*.md "$prefix"/share/doc/moirai/docs/*.md; do # the book, with all pages that its pages link to
    for link in $(grep -oE '\]\([^)# ]+' "$page" | sed 's/^](//' | grep -E '\.(md|svg)$' | grep -vE '^[a-z]+:' || true); do
        [ -e "$(dirname "$page")/$link" ] || { echo "FAILED: $page links to $link, which is not installed"; exit 1; }
    done
done
[ -f "$prefix"/share/doc/moirai/docs/tutorial.md ]
grep -q '^.TH MOIRAI 1' "$prefix"/share/man/man1/moirai.1
bash -n "$prefix"/share/bash-completion/completions/moirai
for header in "$prefix"/include/moirai/*.h; do # each stands alone, also in C++
    echo "#include <moirai/$(basename "$header")>" >one.c
    $cc -std=c11 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only one.c
    $cc -x c++ -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only one.c
done
echo "ok: man page, completion, headers"
[ -f "$(find "$prefix" -path '*doc*' -name formats.md)" ] || { echo "FAILED: docs are not installed"; exit 1; }
echo "ok: docs"

# What scripts/demo builds is all that the README's 'cmake --install' needs.
source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
grep -q -- '--target moirai_install$' "$source/scripts/demo"
if [ -f "$build/build.ninja" ]; then
    ninja -C "$build" -t inputs moirai_install >built
    for file in $(find "$prefix" -type f \( -name 'libmoirai*' -o -name 'moirai*' \) ! -name '*.cmake' ! -name '*.pc' ! -name '*.h' -printf '%f\n'); do
        [ "$file" = moirai ] || grep -q "/$file\$\|^$file\$" built || { echo "FAILED: $file is installed, but not built by the demo"; exit 1; }
    done
fi
echo "ok: the demo builds what is installed"

# A build without a preset is what is installed.
cmake -G Ninja -S "$source" -B plain >plain.log 2>&1 || { cat plain.log; echo "FAILED: a plain build"; exit 1; }
! ninja -C plain -t targets all | grep -E '^(tests|bench|examples)/.*\.o:' || { echo "FAILED: a plain build has tests or benchmarks"; exit 1; }
echo "ok: a plain build is small"

# Without cmocka a user's build goes on without tests.
cmake -G Ninja -S "$source" -B c -DMOIRAI_TESTS=ON -DCMOCKA_LIBRARY=OFF >cmocka.log 2>&1 || { cat cmocka.log; echo "FAILED: no cmocka, no build"; exit 1; }
grep -q 'the tests are left out' cmocka.log
echo "ok: without cmocka"
