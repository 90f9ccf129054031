//! Components that are made to cost whoever compiles them more than they are worth.

use wasm_encoder::{
    BlockType, CodeSection, Component, ConstExpr, DataSection, Function, FunctionSection,
    GlobalSection, GlobalType, Instruction, MemorySection, MemoryType, Module, ModuleSection,
    NestedComponentSection, TypeSection, ValType,
};

/// Around one core module.
fn component(module: &Module) -> Vec<u8> {
    let mut component = Component::new();
    component.section(&ModuleSection(module));
    component.finish()
}

/// Functions without parameters or results, with these bodies.
fn functions(bodies: impl IntoIterator<Item = Function>) -> Vec<u8> {
    let (mut types, mut functions, mut code) =
        (TypeSection::new(), FunctionSection::new(), CodeSection::new());
    types.ty().function([], []);
    for mut body in bodies {
        body.instruction(&Instruction::End);
        code.function(&body);
        functions.function(0);
    }
    component(Module::new().section(&types).section(&functions).section(&code))
}

fn repeated(instructions: &[Instruction<'_>], times: usize) -> Function {
    let mut function = Function::new([(1, ValType::I32)]);
    for _ in 0..times {
        for instruction in instructions {
            function.instruction(instruction);
        }
    }
    function
}

/// Two bytes at a time.
fn long(bytes: usize) -> Function {
    repeated(&[Instruction::LocalGet(0), Instruction::LocalSet(0)], bytes / 4)
}

fn jump(targets: usize) -> Function {
    let targets = vec![0; targets];
    repeated(&[Instruction::I32Const(0), Instruction::BrTable(targets.into(), 0)], 1)
}

fn nested_blocks(depth: usize) -> Function {
    let mut function = repeated(&[Instruction::Block(BlockType::Empty)], depth);
    for _ in 0..depth {
        function.instruction(&Instruction::End);
    }
    function
}

fn data(bytes: usize) -> Vec<u8> {
    let (mut memories, mut data) = (MemorySection::new(), DataSection::new());
    let (memory64, shared, page_size_log2) = (false, false, None);
    memories.memory(MemoryType { minimum: 1, maximum: None, memory64, shared, page_size_log2 });
    data.active(0, &ConstExpr::i32_const(0), vec![b'x'; bytes]);
    component(Module::new().section(&memories).section(&data))
}

fn globals(count: usize) -> Vec<u8> {
    let mut globals = GlobalSection::new();
    for _ in 0..count {
        let kind = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(kind, &ConstExpr::i32_const(0));
    }
    component(Module::new().section(&globals))
}

fn modules(count: usize) -> Vec<u8> {
    let mut component = Component::new();
    for _ in 0..count {
        component.section(&ModuleSection(&Module::new()));
    }
    component.finish()
}

fn nested_components(depth: usize) -> Vec<u8> {
    let mut component = Component::new();
    for _ in 0..depth {
        let mut around = Component::new();
        around.section(&NestedComponentSection(&component));
        component = around;
    }
    component.finish()
}

/// A core module that says that it has four thousand million types, and has none.
fn lying() -> Vec<u8> {
    let types = [&[1_u8, 5][..], &[0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    let module = [b"\0asm\x01\0\0\0", &types[..]].concat();
    let size = u8::try_from(module.len()).expect("a small one");
    [&b"\0asm\x0d\0\x01\0"[..], &[1, size], &module].concat()
}

/// What it is, the component, and a word of why it is refused before anybody compiles it.
pub(crate) fn oversized() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let many_locals = Function::new([(50_000, ValType::I32), (50_000, ValType::I64)]);
    vec![
        ("locals", functions([many_locals]), "locals in one function"),
        ("functions", functions((0..50_000).map(|_| long(0))), "50000 functions"),
        ("jump", functions([jump(60_000)]), "targets of one jump"),
        ("blocks", functions([nested_blocks(20_000)]), "blocks around one another"),
        ("function", functions([long(1 << 20)]), "bytes in one function"),
        ("code", functions((0..50).map(|_| long(100_000))), "bytes of code"),
        ("data", data(9 << 20), "bytes of data"),
        ("globals", globals(60_000), "60000 items"),
        ("modules", modules(100), "modules and components"),
        ("components", nested_components(20), "components around one another"),
        ("lying", lying(), "4294967295 items"),
    ]
}

/// Many variables change in many branches: the compiler has to follow all of them through all.
fn branches(variables: u32, count: u32) -> Function {
    let mut function = Function::new([(variables, ValType::I64)]);
    for step in 0..count {
        let at = |offset: u32| (step.wrapping_mul(7) + offset) % variables;
        function
            .instruction(&Instruction::LocalGet(at(0)))
            .instruction(&Instruction::I64Eqz)
            .instruction(&Instruction::If(BlockType::Empty))
            .instruction(&Instruction::LocalGet(at(1)))
            .instruction(&Instruction::LocalGet(at(variables / 2)))
            .instruction(&Instruction::I64Mul)
            .instruction(&Instruction::LocalSet(at(3)))
            .instruction(&Instruction::End);
    }
    function
}

/// Within every bound, and yet more work than anybody is granted.
pub(crate) fn laborious() -> Vec<u8> {
    functions((0..70).map(|_| branches(300, 1_500)))
}

/// Within every bound, and yet more memory than anybody is granted.
pub(crate) fn spacious() -> Vec<u8> {
    functions((0..20).map(|_| branches(1_500, 5_000)))
}
