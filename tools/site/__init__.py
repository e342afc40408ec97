"""The kit as a static site that runs in a browser: `kafka-ctl site`.

pins       exact versions and hashes of everything that is downloaded (`pins.toml`)
fetch      pip and npm get it, from whatever registries they are configured with
wheels     the kit's own wheel, and what Pyodide must know of each
lessons    which cells of which notebooks can run in a browser, and what the others say
build      puts the site together
serve      serves it on 127.0.0.1
page/      the start page and the try-it page
"""
